import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, Node } from './cluster.js';
import type { Crew } from './crew.js';
import type { FaultKind } from './kinds.js';
import type { PlannedFault } from './plan.js';
import type { Register } from './register.js';

export interface World {
  readonly crew: Crew;
  readonly register: Register;
  readonly keys: readonly string[];
}

/** Of the reserved names, only these are keys of holders. */
const PERMIT = /\0permit:/;

/** Acts on one target from the start of the fault until it is healed. */
type OnMaster = (node: Node, fault: PlannedFault) => Promise<void>;
type OnWorker = (world: World, worker: number, fault: Pick<PlannedFault, 'lasts'>) => Promise<void>;

const ON_MASTER = {
  'kill -9, back at once': ({ server }) => server.restart(),
  'kill -9, back later': killFor,
  'kill -9 of a majority': killFor,
  FLUSHALL: async (node) => {
    await node.command('FLUSHALL');
  },
  'clock jumps forward': async (node, { size }) => node.stepClock(Math.round(100 + 2_900 * size)),
  'clock is set back': async (node, { size }) => node.stepClock(-Math.round(100 + 400 * size)),
  'master stopped': async ({ server }, { lasts }) => {
    server.pause();
    await sleep(lasts);
    server.resume();
  },
  'connections refused': async ({ proxy }, { lasts }) => {
    proxy.refuse = true;
    proxy.reset();
    await sleep(lasts);
    proxy.refuse = false;
  },
  'connections reset': async ({ proxy }) => proxy.reset(),
  'connections half-open': async ({ proxy }, { lasts, size }) => {
    proxy.halfOpen();
    await sleep(lasts);
    // Without the reset, the clients receive no sign of the fault, and have to detect it themselves.
    if (size < 0.8) proxy.reset();
  },
  'black hole': async ({ proxy }, { lasts }) => {
    proxy.blackHole();
    await sleep(lasts);
    proxy.blackHole(false);
    // The swallowed bytes are missing in the middle of the stream, so only a new connection helps.
    proxy.reset();
  },
  'requests lost': async ({ proxy }, { lasts }) => {
    proxy.requests.blackHole = true;
    await sleep(lasts);
    proxy.requests.blackHole = false;
    proxy.reset();
  },
  'replies lost': async ({ proxy }, { lasts }) => {
    proxy.replies.blackHole = true;
    await sleep(lasts);
    proxy.replies.blackHole = false;
    proxy.reset();
  },
  'everything late': async ({ proxy }, { lasts, size }) => {
    // The delays range from less than a master's timeout to more than a ttl, and differ between the directions.
    proxy.requests.delay = 10 + 400 * size;
    proxy.replies.delay = 410 - 400 * size;
    await sleep(lasts);
    proxy.requests.delay = proxy.replies.delay = 0;
  },
  'slow bytes': async ({ proxy }, { lasts, size }) => {
    proxy.requests.pace = proxy.replies.pace = Math.ceil(2 + 60 * size);
    await sleep(lasts);
    proxy.requests.pace = proxy.replies.pace = Infinity;
  },
  'CLIENT KILL': async (node, { size }) => {
    await node.command('CLIENT', 'KILL', 'TYPE', size < 0.3 ? 'pubsub' : 'normal');
  },
  'SCRIPT FLUSH': async (node) => {
    await node.command('SCRIPT', 'FLUSH');
  },
  'out of memory': (node, { lasts }) => configured(node, lasts, 'maxmemory', '1', '0'),
  'writes refused': (node, { lasts }) => configured(node, lasts, 'min-replicas-to-write', '1', '0'),
  'read-only replica': async (node, { lasts }) => {
    // No server listens at that address, so the master keeps its data.
    await node.command('REPLICAOF', '127.0.0.1', '1');
    await sleep(lasts);
    await node.command('REPLICAOF', 'NO', 'ONE');
  },
  'keys deleted by an operator': async (node) => {
    const names = (await node.keys()).map(({ key }) => key);
    const keys = names.filter((key) => !key.includes('\0') || PERMIT.test(key));
    if (keys.length > 0) await node.command('DEL', ...keys);
  },
} as const satisfies Partial<Record<FaultKind, OnMaster>>;

export const ON_WORKER = {
  'worker stopped': ({ crew }, worker, { lasts }) => stop(crew, worker, lasts),
  'holder stopped before its write': async ({ crew, register }, worker, { lasts }) => {
    // A worker that has written at the beginning of its section writes again at its end.
    await stop(crew, (await register.nextWriter(500)) ?? worker, lasts);
  },
  'worker killed': ({ crew }, worker) => crew.replace(worker),
} as const satisfies Partial<Record<FaultKind, OnWorker>>;

/** Carries out a fault and heals it. */
export async function carryOut(cluster: Cluster, world: World, fault: PlannedFault): Promise<true> {
  const { kind, targets } = fault;
  const nodes = targets.map((index) => cluster.nodes[index] as Node);
  if (kind === 'FLUSHALL met by a new process') {
    await Promise.all([...nodes.map((node) => node.command('FLUSHALL')), world.crew.replace(0)]);
  } else if (kind in ON_WORKER) {
    const act = ON_WORKER[kind as keyof typeof ON_WORKER];
    await Promise.all(targets.map((worker) => act(world, worker, fault)));
  } else {
    const act: OnMaster = ON_MASTER[kind as keyof typeof ON_MASTER];
    await Promise.all(nodes.map((node) => act(node, fault)));
  }
  return true;
}

async function killFor({ server }: Node, { lasts }: PlannedFault): Promise<void> {
  await server.kill();
  await sleep(lasts);
  await server.restart();
}

async function configured(node: Node, lasts: number, name: string, during: string, after: string): Promise<void> {
  await node.command('CONFIG', 'SET', name, during);
  await sleep(lasts);
  await node.command('CONFIG', 'SET', name, after);
}

async function stop(crew: Crew, worker: number, lasts: number): Promise<void> {
  crew.pause(worker);
  await sleep(lasts);
  crew.resume(worker);
}
