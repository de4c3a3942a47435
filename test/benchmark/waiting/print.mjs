import { figure, printTable, range, times } from '../report.mjs';

const masters = (count) => `${count} ${count === 1 ? 'master' : 'masters'}`;

/** Prints tables of the results for one number of masters. */
export function printWaiting(found) {
  const name = masters(found.masters);
  printUncontended(name, found.uncontended);
  for (const scene of found.contention) printContention(name, scene);
  printCrowd(name, found.crowd);
  printHandOffs(name, found.handOffs);
  printLatency(name, found.latency);
  if (found.localHandOff) printLocalHandOff(name, found.localHandOff);
}

function printUncontended(name, { contenders, pingAll, refusal }) {
  printTable(`${name}, without contention (ms)`, [
    ['', 'commands', 'acquire', 'acquire + release', 'acquire in PINGs to all'],
    ...Object.entries(contenders).map(([contender, { commands, acquire, both }]) => [
      ...[contender, figure(commands), figure(acquire), figure(both), times(acquire / pingAll)],
    ]),
    ['ours, held, wait: 0', figure(refusal.commands), figure(refusal.time), '', times(refusal.time / pingAll)],
  ]);
}

function printContention(name, { processes, waiters, contenders }) {
  const { ours } = contenders;
  printTable(
    `${name}, ${processes} processes x ${waiters} waiting for one key, 1 ms section (waits in ms, commands per section)`,
    [
      [
        ...[
          '',
          'hand-offs/s',
          'ours / it',
          'sections/s',
          'ours / it',
          'wait p50',
          'longest',
          'ours / it',
          'commands',
          'failures',
          'overlaps',
        ],
        ...['luckiest / unluckiest', 'overtaken by'],
      ],
      ...Object.entries(contenders).map(([contender, it]) => [
        ...[contender, figure(it.handOffRate), times(ours.handOffRate / it.handOffRate)],
        ...[
          figure(it.sectionRate),
          times(ours.sectionRate / it.sectionRate),
          figure(it.medianWait),
          figure(it.longestWait),
        ],
        ...[times(ours.longestWait / it.longestWait), figure(it.commands), it.failures, it.overlaps],
        ...[times(it.luck), it.mostOvertaken],
      ]),
    ],
  );
}

function printCrowd(name, { waiters, handOffRate, longestWait, commands, failures }) {
  printTable(`${name}, 1 process x ${waiters} waiting for one key`, [
    ['', 'hand-offs/s', 'longest wait', 'commands', 'failures'],
    ['ours', figure(handOffRate), figure(longestWait), figure(commands), failures],
  ]);
}

function printHandOffs(name, crowds) {
  printTable(
    `${name}, from release to work of the next holder, 1 ms section: milliseconds, medians of the rounds (smallest-largest)`,
    [
      ['waiters', '', 'p50', 'p99', 'samples', 'to another process: p50', 'p99', 'samples'],
      ...crowds.flatMap(({ waiting, contenders }) =>
        contenders.map(({ name: contender, all, away }, i) => [
          ...[i === 0 ? waiting : '', contender],
          ...[all, away].flatMap(({ p50, p99, samples }) => [range(p50), range(p99), samples]),
        ]),
      ),
    ],
  );
}

function printLatency(name, { roundTrip, pingToOne, pingToAll, hotPing, ours, atOnce, 'redlock5-10ms': tuned }) {
  const row = (title, { p50, p99, samples }) => [
    ...[
      title,
      figure(p50),
      figure(p99),
      times(p50 / roundTrip.p50),
      times(p50 / pingToOne.p50),
      times(p50 / pingToAll.p50),
      samples,
    ],
  ];
  printTable(`${name}, from release in one process to work in the other (ms)`, [
    ['', 'p50', 'p99', 'in round trips', 'in PINGs to one', 'in PINGs to all', 'samples'],
    row('round trip: SET in a script, a quorum, two processes', roundTrip),
    row('PING to one, at the same pace', pingToOne),
    row('PING to all, at the same pace', pingToAll),
    row('PING to one, without pauses', hotPing),
    row('ours', ours),
    row('ours, where the holder wants it again at once', atOnce),
    row('redlock5-10ms', tuned),
  ]);
}

function printLocalHandOff(name, scenes) {
  for (const { waiters, section, handOvers } of scenes) {
    const today = handOvers[1];
    printTable(`${name}, prototype, 1 process x ${waiters} waiting for one key, ${section} ms section`, [
      ['', 'hand-offs/s', 'to today', 'CPU of the client (us)'],
      ...handOvers.map(({ handOver, perSecond, cpu }) => [
        ...[handOver, figure(perSecond), times(perSecond / today.perSecond), figure(cpu)],
      ]),
    ]);
  }
}
