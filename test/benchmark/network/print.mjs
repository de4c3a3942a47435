import { figure, printTable, range } from '../report.mjs';

export function printLatencies(masters, scenes) {
  printTable(
    `N = ${masters}, each with a key of its own: milliseconds, medians of the rounds (smallest-largest); p99.9 of all rounds together`,
    [
      [
        ...['added', '', 'callers', 'a PING', 'acquire p50', 'p99', 'p99.9'],
        ...['release p50', 'p99', 'p99.9', 'samples'],
      ],
      ...rowsOf(scenes, ({ callers, ping, latencies }, name) => {
        const { acquire, release } = latencies[name];
        const times = [acquire, release].flatMap(({ p50, p99, p999 }) => [range(p50), range(p99), figure(p999)]);
        return [callers, figure(ping), ...times, acquire.samples];
      }),
    ],
  );
}

export function printLoads(masters, scenes) {
  printTable(
    `N = ${masters}, as many at a time as it takes for the most locks/s: medians of the rounds (smallest-largest)`,
    [
      [
        ...['added', '', 'at a time', 'client busy %', 'locks/s', 'locks/s per client core'],
        ...['client s per million locks', 'each master s per million locks', 'failures'],
      ],
      ...rowsOf(scenes, ({ loads }, name) => {
        const { concurrency, busy, rate, perCore, client, failures, ...load } = loads[name];
        const each = `${figure(load.master.median)} (${figure(load.leastMaster.median)}-${figure(load.mostMaster.median)})`;
        return [
          ...[concurrency, figure(busy.median * 100), range(rate), range(perCore)],
          ...[range(client), masters === 1 ? range(load.master) : each, failures.length],
        ];
      }),
    ],
  );
}

export function printTraffic(masters, scenes) {
  printTable(`N = ${masters}, per lock, with all masters, at that load`, [
    ['added', '', 'commands sent', 'run, also in scripts', 'bytes sent', 'bytes received'],
    ...rowsOf(scenes, ({ loads }, name) => {
      const { requests, run, sent, received } = loads[name];
      return [figure(requests), figure(run.median), Math.round(sent.median), Math.round(received.median)];
    }),
  ]);
}

/** One row per delay and contender. */
function rowsOf(scenes, cells) {
  return scenes.flatMap((scene) =>
    Object.keys(scene.loads).map((name, i) => [i === 0 ? `${scene.delay} ms` : '', name, ...cells(scene, name)]),
  );
}
