/** Path of Chromium or Chrome: the variable `CHROMIUM`, else what PATH has. */
export declare function findChromium(): string | undefined;

/** Installs Chromium if there is none and no question has to be asked; rejects with the one line to type otherwise. */
export declare function ensureChromium(): Promise<string>;
