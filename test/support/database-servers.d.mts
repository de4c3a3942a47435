/** A server that lives until it is stopped, or this process ends. */
export interface DatabaseServer {
  readonly name: string;
  /** Of a database in which tables may be created. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * @param programs folder of the server's programs, as `findPostgres` gives it
 * @param prepare is called with the folder of the data, and the user of the server, before it starts
 */
export declare function startPostgres(
  programs: string,
  prepare?: (data: string, user: { readonly uid?: number; readonly gid?: number }) => void,
): Promise<DatabaseServer>;

/** @param programs paths of the server's programs, as `findMariadb` gives them */
export declare function startMariadb(programs: Readonly<Record<'server' | 'install', string>>): Promise<DatabaseServer>;
