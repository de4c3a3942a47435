/** Folder of the newest PostgreSQL programs on this machine; `undefined` if there are none. */
export declare function findPostgres(): string | undefined;

/**
 * Like {@link findPostgres}, but installs PostgreSQL if it is missing and no password is needed. If that fails, logs
 * the command to run and returns `undefined`.
 *
 * @param log receives the message. Default: the standard output
 */
export declare function ensurePostgres(log?: (line: string) => void): Promise<string | undefined>;
