import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, type Node } from './cluster.js';
import { type Crew } from './crew.js';
import { type FaultKind } from './kinds.js';
import { type PlannedFault } from './plan.js';
import { type Register } from './register.js';

/** What a nemesis can act on. */
export interface World {
  readonly cluster: Cluster;
  readonly crew: Crew;
  readonly register: Register;
  readonly keys: readonly string[];
}

/** Of the reserved names, only these are keys of holders. */
const PERMIT = /\0permit:/;

/** Acts on one target from the start of the fault until it is healed. */
type OnMaster = (node: Node, fault: PlannedFault) => Promise<void>;
type OnWorker = (world: World, worker: number, fault: PlannedFault) => Promise<void>;

const ON_MASTER = {
  'kill -9, back at once': ({ server }) => server.restart(),
  'kill -9, back later': killed(),
  'kill -9 of a majority': killed(),
  FLUSHALL: async (node) => {
    await node.command('FLUSHALL');
  },
  'FLUSHALL of a majority': async (node) => {
    await node.command('FLUSHALL');
  },
  'master stopped': lasting(
    ({ server }) => server.pause(),
    ({ server }) => server.resume(),
  ),
  'connections refused': lasting(
    ({ proxy }) => {
      proxy.refuse = true;
      proxy.reset();
    },
    ({ proxy }) => (proxy.refuse = false),
  ),
  'connections reset': async ({ proxy }) => proxy.reset(),
  'connections half-open': lasting(
    ({ proxy }) => proxy.halfOpen(),
    // Without the reset, the clients receive no sign of the fault, and have to detect it themselves.
    ({ proxy }, { size }) => size < 0.8 && proxy.reset(),
  ),
  'black hole': swallowing('requests', 'replies'),
  'requests lost': swallowing('requests'),
  'replies lost': swallowing('replies'),
  'everything late': lasting(
    // The delays range from less than a master's timeout to more than a ttl, and differ between the directions.
    ({ proxy }, { size }) => {
      proxy.requests.delay = 10 + 400 * size;
      proxy.replies.delay = 410 - 400 * size;
    },
    ({ proxy }) => (proxy.requests.delay = proxy.replies.delay = 0),
  ),
  'slow bytes': lasting(
    ({ proxy }, { size }) => (proxy.requests.pace = proxy.replies.pace = Math.ceil(2 + 60 * size)),
    ({ proxy }) => (proxy.requests.pace = proxy.replies.pace = Infinity),
  ),
  'CLIENT KILL': async (node, { size }) => {
    await node.command('CLIENT', 'KILL', 'TYPE', size < 0.3 ? 'pubsub' : 'normal');
  },
  'SCRIPT FLUSH': async (node) => {
    await node.command('SCRIPT', 'FLUSH');
  },
  'out of memory': commands('CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0'),
  'writes refused': commands('CONFIG SET min-replicas-to-write 1', 'CONFIG SET min-replicas-to-write 0'),
  // No server listens at that address, so the master keeps its data.
  'read-only replica': commands('REPLICAOF 127.0.0.1 1', 'REPLICAOF NO ONE'),
  'keys deleted by an operator': async (node) => {
    const names = (await node.keys()).map(({ key }) => key);
    const keys = names.filter((key) => !key.includes('\0') || PERMIT.test(key));
    if (keys.length > 0) await node.command('DEL', ...keys);
  },
} as const satisfies Partial<Record<FaultKind, OnMaster>>;

const ON_WORKER = {
  'worker stopped': ({ crew }, worker, { lasts }) => crew.stop(worker, lasts),
  'holder stopped before its write': async ({ crew, register }, worker, { lasts }) => {
    // A worker that has written at the beginning of its section writes again at its end.
    await crew.stop((await register.nextWriter(500)) ?? worker, lasts);
  },
  'worker killed': ({ crew }, worker) => crew.replace(worker),
} as const satisfies Partial<Record<FaultKind, OnWorker>>;

/** Carries out a fault and heals it. */
export async function carryOut(world: World, fault: PlannedFault): Promise<void> {
  const { kind, targets } = fault;
  const nodes = targets.map((index) => world.cluster.nodes[index] as Node);
  if (kind === 'FLUSHALL met by a new process') {
    await Promise.all([...nodes.map((node) => node.command('FLUSHALL')), world.crew.replace(0)]);
  } else if (kind in ON_WORKER) {
    const act = ON_WORKER[kind as keyof typeof ON_WORKER];
    await Promise.all(targets.map((worker) => act(world, worker, fault)));
  } else {
    const act: OnMaster = ON_MASTER[kind as keyof typeof ON_MASTER];
    await Promise.all(nodes.map((node) => act(node, fault)));
  }
}

type Act = (node: Node, fault: PlannedFault) => unknown;

/** A fault that begins, lasts, and is healed. */
function lasting(begin: Act, heal: Act): OnMaster {
  return async (node, fault) => {
    await begin(node, fault);
    await sleep(fault.lasts);
    await heal(node, fault);
  };
}

function killed(): OnMaster {
  return lasting(
    ({ server }) => server.kill(),
    ({ server }) => server.restart(),
  );
}

function commands(begin: string, heal: string): OnMaster {
  const run = (words: string): Act => {
    const [name = '', ...args] = words.split(' ');
    return (node) => node.command(name, ...args);
  };
  return lasting(run(begin), run(heal));
}

/** The swallowed bytes are missing in the middle of the stream, so only a new connection helps. */
function swallowing(...directions: readonly ('requests' | 'replies')[]): OnMaster {
  const set = (proxy: Node['proxy'], blackHole: boolean): void => {
    for (const direction of directions) proxy[direction].blackHole = blackHole;
  };
  return lasting(
    ({ proxy }) => set(proxy, true),
    ({ proxy }) => {
      set(proxy, false);
      proxy.reset();
    },
  );
}
