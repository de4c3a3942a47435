import { command } from '../../support/command.js';
import { eventually } from '../../support/eventually.js';

/** Makes the server on one port the replica of another one. Resolves when it has the data of its primary. */
export async function follow(replica: number, primary: number): Promise<void> {
  // By default, a primary waits five seconds for more replicas.
  await command(primary, 'CONFIG', 'SET', 'repl-diskless-sync-delay', 0);
  await command(replica, 'REPLICAOF', '127.0.0.1', primary);
  await eventually(async () => String(await command(replica, 'ROLE')).includes('connected'));
}
