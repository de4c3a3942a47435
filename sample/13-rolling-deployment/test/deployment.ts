import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { type Entry, Ledger } from '../src/ledger.js';
import { Program } from '../../../test/support/program.js';

const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url));

const masters: RedisServer[] = [];
const instances: Program[] = [];
let store: string;

beforeAll(async () => {
  for (let i = 0; i < 3; i++) masters.push(await RedisServer.start());
}, 60_000);
afterAll(async () => {
  await Promise.all(masters.map((master) => master.stop()));
});

beforeEach(() => {
  store = mkdtempSync(join(tmpdir(), 'rolling-deployment-'));
});
afterEach(async () => {
  for (const instance of instances) instance.kill('SIGKILL');
  await Promise.all(instances.splice(0).map((instance) => instance.ended));
  rmSync(store, { recursive: true, force: true });
});

export function start(env: NodeJS.ProcessEnv = {}): Program {
  const urls = masters.map(({ url }) => url).join(',');
  const instance = Program.start(PROGRAM, { REDLOCK_MASTERS: urls, STORE: store, BATCH_TIME: '300', ...env });
  instances.push(instance);
  return instance;
}

/** Starts an instance that works and one that waits for it to leave, as in the middle of a deployment. */
export async function deploy(env: NodeJS.ProcessEnv = {}): Promise<[old: Program, fresh: Program]> {
  const old = start(env);
  await old.says('begun');
  const fresh = start();
  await fresh.says('waits for the import');
  return [old, fresh];
}

export const entriesOf = (instance: Program): Entry[] =>
  new Ledger(store).entries().filter((entry) => entry.instance === instance.pid);

export function done(instance?: Program): number[] {
  const entries = instance ? entriesOf(instance) : new Ledger(store).entries();
  return entries.filter(({ event }) => event === 'done').map(({ batch }) => batch);
}

/** Batches that began while another one was running. */
export function overlaps(): Entry[] {
  let running = 0;
  return new Ledger(store).entries().filter(({ event }) => {
    running += event === 'begun' ? 1 : -1;
    return running > 1;
  });
}

export const oneToN = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);
