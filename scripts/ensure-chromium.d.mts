/** Path of Chromium or Chrome: the variable `CHROMIUM`, else a browser in PATH. */
export declare function findChromium(): string | undefined;

/** Installs Chromium if it is missing and no password is needed; otherwise rejects with the command to run. */
export declare function ensureChromium(): Promise<string>;
