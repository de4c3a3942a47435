export const OURS = 'ours';
export const PLAIN = 'ours-plain';
export const FLOOR = 'floor-ioredis';

/** The build of another checkout, if the run compares with one. */
export const BEFORE = 'before';
export const before = process.env.BENCH_BEFORE ? [BEFORE] : [];

/** Other libraries, with the largest number of masters for which this comparison runs them. */
const PEERS = {
  redlock5: 5,
  'redlock-universal': 5,
  'redis-semaphore': 5,
  'redis-kit': 5,
  'effect-distributed-lock': 1,
};

export const isPeer = (contender) => Object.hasOwn(PEERS, contender);

/** With a retry delay that suits a section of one millisecond, which is what `waiting` has. */
export const TUNED = ['redlock5', 'redis-kit', 'redlock-universal'].map((peer) => `${peer}-10ms`);

/** Whether `--only` may name it. */
export const isContender = (name, suites) =>
  [FLOOR, OURS, PLAIN, ...before].includes(name) ||
  isPeer(name) ||
  (suites.includes('waiting') && TUNED.includes(name));

/**
 * The contenders for this number of masters, restricted by `only`. The floor always takes part, because the results of
 * the others are relative to it.
 */
export function contendersFor(masters, only) {
  const peers = Object.keys(PEERS).filter((peer) => PEERS[peer] >= masters);
  const all = [FLOOR, OURS, PLAIN, ...peers];
  const chosen = only ? all.filter((contender) => contender === FLOOR || only.includes(contender)) : all;
  return [...chosen, ...before];
}

/** The contenders that are libraries. */
export const librariesFor = (masters, only) => contendersFor(masters, only).filter((name) => name !== FLOOR);

/** The contenders of a quick run in which each has to be measured alone. */
export const FEW = [OURS, 'redlock5', 'redis-semaphore'];

/** Loads a contender, and nothing of the others: what a process loads is measured, too. Returns what connects it. */
export async function loadContender(name) {
  const isOurs = /^ours/.test(name);
  const file = isOurs ? 'ours.mjs' : name === BEFORE ? 'ours.mjs?before' : `${name.replace('-10ms', '')}.mjs`;
  const { connect } = await import(`./contenders/${file}`);
  return (urls, settings) => connect(urls, settings, name);
}
