export interface MariadbPrograms {
  readonly server: string;
  readonly install: string;
}

/** Paths of MariaDB's programs on this machine; `undefined` if there are none. */
export declare function findMariadb(): MariadbPrograms | undefined;

/**
 * Like {@link findMariadb}, but installs MariaDB if it is missing and no password is needed. If that fails, logs the
 * command to run and returns `undefined`.
 *
 * @param log receives the message. Default: the standard output
 */
export declare function ensureMariadb(log?: (line: string) => void): Promise<MariadbPrograms | undefined>;
