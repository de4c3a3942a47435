/** The result of `find`, after an installation if necessary. Otherwise rejects with the command to run. */
export declare function ensureProgram(
  name: string,
  find: () => string | undefined,
  packages: Readonly<Record<string, readonly string[]>>,
  help: string,
): Promise<string>;
/** Path of a program; `undefined` if PATH does not contain it. */
export declare function onPath(name: string): string | undefined;

export declare function ensureChromium(): Promise<string>;

/** Folder of the newest programs, installed if need be. */
export declare function ensurePostgres(): Promise<string | undefined>;
/** Folder of the newest programs. */
export declare function findPostgres(): string | undefined;
/** Paths of the newest programs, installed if need be. */
export declare function ensureMariadb(): Promise<Readonly<Record<'server' | 'install', string>> | undefined>;
export declare function findMariadb(): Readonly<Record<'server' | 'install', string>> | undefined;
export declare function findPrometheus(): Readonly<Record<'prometheus' | 'promtool', string>> | undefined;
