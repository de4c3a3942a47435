import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { ratioOf, spread } from '../measure/figures.mjs';
import { atMost, GOALS, printTable, range, times } from '../report.mjs';
import { WorkerProcess } from '../worker/processes.mjs';

const LENGTHS = {
  usual: { rounds: 24, calls: 2_000 },
  quick: { rounds: 16, calls: 1_000 },
};

/**
 * Measures what a call costs that locks by `acquire` and `release`, by `LockService.withLock`, and by `@WithLock`, in
 * microseconds of the client's CPU.
 */
export async function run({ quick, masters = [1, 3] }) {
  const figures = [];
  for (const count of masters) {
    const servers = await Promise.all(Array.from({ length: count }, () => RedisServer.start()));
    const worker = new WorkerProcess();
    try {
      const task = { masters: servers.map(({ url }) => url), ...(quick ? LENGTHS.quick : LENGTHS.usual) };
      const rounds = await worker.run('decorator', task);
      const of = (name) => spread(rounds.map((costs) => costs[name]));
      const found = { byHand: of('byHand'), direct: of('direct'), decorated: of('decorated') };
      print(count, found);
      figures.push({ masters: count, ...found });
    } finally {
      await worker.end();
      await Promise.all(servers.map((server) => server.stop()));
    }
  }
  return { figures, checks: figures.map(checkOf) };
}

function print(masters, { byHand, direct, decorated }) {
  const row = (title, cost) => [title, range(cost), times(ratioOf(cost, byHand))];
  printTable(`A locked call, N = ${masters}, 64 at a time: microseconds of the client's CPU (smallest-largest round)`, [
    ['', 'us/call', 'to acquire and release'],
    row('acquire and release', byHand),
    row('LockService.withLock', direct),
    row('@WithLock', decorated),
  ]);
}

function checkOf({ masters, byHand, decorated }) {
  const promise = `N = ${masters}: client CPU of @WithLock at most ${GOALS.decorator} of acquire and release`;
  return atMost(promise, ratioOf(decorated, byHand), GOALS.decorator);
}
