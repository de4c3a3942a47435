import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { startPostgres } from '../support/database-servers.mjs';
import { findPostgres } from '../../scripts/programs.mjs';
import { Arena, fencedDatabases, outcomeOf } from './support/fenced-databases.js';

const programs = findPostgres();
/** Debian leaves the program out of PATH. */
const FOLDERS = [programs ?? '', '/usr/lib/postgresql/15/bin', '/usr/lib/postgresql/17/bin'];
const reset = FOLDERS.map((folder) => join(folder, 'pg_resetwal')).find((path) => existsSync(path));
const database = fencedDatabases().find(({ dialect }) => dialect === 'postgres');

if (programs && reset && database) {
  it('On PostgreSQL, a fence passes once the numbers of transactions have passed 2^32', async () => {
    const start = (): ReturnType<typeof startPostgres> =>
      startPostgres(programs, (data, user) => void execFileSync(reset, ['-f', '-e', '3', '-D', data], user));
    await using arena = await Arena.open({ ...database, start });
    await arena.reset();
    await arena.one.begin('READ COMMITTED');
    await expect(outcomeOf(arena.one.fence(41))).resolves.toBe('passed');
  }, 60_000);
} else {
  console.log('Not run: numbers of transactions beyond 2^32, because there is no pg_resetwal on this machine');
  it('needs pg_resetwal', () => expect([programs, reset]).toContain(undefined));
}
