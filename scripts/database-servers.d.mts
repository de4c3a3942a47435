import type { MariadbPrograms } from './ensure-mariadb.mjs';

/** A server that lives until it is stopped, or this process ends. */
export interface DatabaseServer {
  readonly name: string;
  /** Of a database in which tables may be created. */
  readonly url: string;
  stop(): Promise<void>;
}

/** @param programs folder of the server's programs, as `findPostgres` gives it */
export declare function startPostgres(programs: string): Promise<DatabaseServer>;

/** @param programs paths of the server's programs, as `findMariadb` gives them */
export declare function startMariadb(programs: MariadbPrograms): Promise<DatabaseServer>;
