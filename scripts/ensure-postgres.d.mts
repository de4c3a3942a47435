/** Folder of PostgreSQL's programs on this machine, the newest version first; `undefined` if there are none. */
export declare function findPostgres(): string | undefined;

/**
 * The same after an installation, if there is none and no question has to be asked. Where that fails, says what to type
 * and gives `undefined`.
 *
 * @param log where to say that. Default: the standard output
 */
export declare function ensurePostgres(log?: (line: string) => void): Promise<string | undefined>;
