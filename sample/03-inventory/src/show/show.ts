import { ensureRedisServer, RedisServer } from '../../../../scripts/redis-servers.mjs';
import { TTL } from '../config.js';
import { Instance } from './instance.js';
import { startDatabase, type StartDatabase } from './start-database.js';

const ITEM = 'last-teapots';
const IN_STOCK = 10;
/** Sales of the other instance while the first one is paused. */
const SALES = 3;

/** The outcome of one run. */
export interface Result {
  readonly fenced: boolean;
  /** From the request of the paused sale, and so before its lock, until its instance goes on, in milliseconds. */
  readonly paused: number;
  /** HTTP status of the paused sale. */
  readonly status: number;
  readonly message: string | undefined;
  /** The stock according to the database, and the correct stock. */
  readonly count: number;
  readonly expected: number;
}

/** The environment that the instances share. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

/** Uses `REDIS_URLS` and `DATABASE_URL` if they are set, and starts whatever is missing. */
export async function surround(
  log: (line: string) => void,
  start: StartDatabase = startDatabase,
): Promise<Surroundings> {
  const cleanUps: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  };
  try {
    let { REDIS_URLS } = process.env;
    const database = await start(log);
    cleanUps.push(() => database.stop());
    if (!REDIS_URLS) {
      await ensureRedisServer();
      const masters: RedisServer[] = [];
      cleanUps.push(async () => {
        await Promise.all(masters.map((master) => master.stop()));
      });
      for (let i = 0; i < 3; i++) masters.push(await RedisServer.start());
      REDIS_URLS = masters.map(({ url }) => url).join(',');
      log(`Three masters have just been started: they vote in ${TTL} ms, when no lock is older.`);
    }
    return { env: { DATABASE_URL: database.url, REDIS_URLS }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Pauses an instance between its last check and its write, for longer than its lock lives. */
export async function run({ env }: Surroundings, fenced: boolean, log: (line: string) => void): Promise<Result> {
  const instances: Instance[] = [];
  const start = async (more: NodeJS.ProcessEnv): Promise<Instance> => {
    const instance = await Instance.start({ ...env, FENCED: fenced ? 'on' : 'off', ...more });
    instances.push(instance);
    return instance;
  };
  try {
    const [paused, other] = [await start({ FREEZE: 'on' }), await start({})];
    await succeed(other, 'PUT', `/stock/${ITEM}`, { count: IN_STOCK });
    log(`  ${IN_STOCK} in stock`);

    const since = performance.now();
    const sale = paused.request('POST', `/stock/${ITEM}/sales`);
    // If the instance never freezes, its answer shows why.
    await Promise.race([paused.frozen, sale]);
    log('  one instance has read that, and is paused before it writes');
    for (let i = 0; i < SALES; i++) await succeed(other, 'POST', `/stock/${ITEM}/sales`);
    const duration = Math.round(performance.now() - since);
    log(`  its lock ended meanwhile, and another instance sold ${SALES}; after ${duration} ms the first one goes on`);
    paused.wake();
    const { status, body } = await sale;
    log(`  ${status}: ${body.message ?? ''}`);

    const count = await succeed(other, 'GET', `/stock/${ITEM}`);
    const expected = IN_STOCK - SALES;
    log(`  ${count} in the books, and ${expected} on the shelf`);
    return { fenced, paused: duration, status, message: body.message, count, expected };
  } finally {
    await Promise.all(instances.map((instance) => instance.stop()));
  }
}

async function succeed(
  instance: Instance,
  method: 'GET' | 'PUT' | 'POST',
  path: string,
  body?: object,
): Promise<number> {
  const { status, body: answer } = await instance.request(method, path, body);
  if (status >= 300 || answer.count === undefined)
    throw new Error(`${method} ${path}: ${status} ${answer.message ?? ''}`);
  return answer.count;
}
