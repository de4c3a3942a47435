import { before, BEFORE, contendersFor, FLOOR, isPeer, OURS, PLAIN } from '../contenders.mjs';
import { onField, warmUp } from '../measure/field.mjs';
import { fixedWork, inRounds, joinedSpread, ratioOf, spread } from '../measure/figures.mjs';
import { CommandCounter, ServerLoad } from '../measure/servers.mjs';
import { atLeast, atMost, below, exactly, figure, GOALS, noMore, printTable, range, times } from '../report.mjs';

/** Longer than any pause of a busy machine. Masters that have just started also wait this long before they vote. */
const TTL = 3_000;

/** The concurrency to which the promises refer. */
const PROMISED = 64;

const LENGTHS = {
  usual: [
    { concurrency: 16, duration: 200, rounds: 3, warmUps: 1 },
    { concurrency: PROMISED, duration: 200, rounds: 7, warmUps: 1 },
  ],
  quick: [{ concurrency: PROMISED, duration: 160, rounds: 5, warmUps: 1 }],
  comparison: [16, PROMISED, 256].map((concurrency) => ({ concurrency, duration: 100, rounds: 11, warmUps: 2 })),
};
/**
 * Two processes of the same build differ by a tenth for as long as they live, depending on what their compilers saw first,
 * and what is asked is whether two builds differ by 3 %.
 */
const CREWS_OF_COMPARISON = 9;

/** Measures the cost of an uncontended lock: CPU of the client and of the servers, locks per second, and commands. */
export async function run({ quick, masters = quick ? [1, 5] : [1, 3, 5], only }) {
  const isComparison = before.length > 0 && !quick;
  const scenes = quick ? LENGTHS.quick : isComparison ? LENGTHS.comparison : LENGTHS.usual;
  const figures = [];
  for (const count of masters) {
    const field = { masters: count, contenders: contendersFor(count, only), ttl: TTL };
    const crews = [];
    while (crews.length < (isComparison ? CREWS_OF_COMPARISON : 1)) {
      crews.push(await onField(field, (bench) => measure(bench, { quick, scenes })));
    }
    const [{ commands }] = crews;
    const throughput = scenes.map((_, i) => joined(crews.map((crew) => crew.throughput[i])));
    for (const scene of throughput) printThroughput(`N = ${count}, `, scene, { base: FLOOR });
    printCommands(count, commands);
    figures.push({ masters: count, throughput, commands });
  }
  return { figures, checks: figures.flatMap(checksOf) };
}

async function measure(field, { quick, scenes }) {
  const load = await ServerLoad.watch(field.urls);
  try {
    await warmUp(field, { quick });
    const found = [];
    for (const scene of scenes) found.push(await throughput({ ...field, load }, scene));
    return { throughput: found, commands: await commandsPerLock(field) };
  } finally {
    load.close();
  }
}

/** Measures the cost of a lock at one concurrency: per contender the rate and the CPU on both sides, and the noise. */
export async function throughput({ crew, load, ttl }, { concurrency, duration, rounds, warmUps }) {
  const noise = [];
  const measured = await inRounds({ rounds, warmUps }, crew.members, async (contender, round) => {
    if (round >= 0) noise.push(fixedWork());
    const before = await load.cpu(contender);
    const { locks, elapsed, cpu, failures } = await crew.run(contender, 'load', { concurrency, duration, ttl });
    const server = (await load.cpu(contender)) - before;
    return { rate: (locks / elapsed) * 1000, client: cpu / locks, server: server / locks, failures };
  });
  const contenders = {};
  for (const [contender, found] of measured) {
    const of = (name) => spread(found.map((figures) => figures[name]));
    const failures = found.flatMap(({ failures }) => Object.entries(failures));
    contenders[contender] = { rate: of('rate'), client: of('client'), server: of('server'), failures };
  }
  return { concurrency, contenders, noise: spread(noise) };
}

/** The results of several crews as one. */
function joined(crews) {
  const [{ concurrency, contenders: names }] = crews;
  const contenders = Object.keys(names).map((name) => {
    const found = crews.map((crew) => crew.contenders[name]);
    const of = (figure) => joinedSpread(found.map((figures) => figures[figure]));
    const failures = found.flatMap((figures) => figures.failures);
    return [name, { rate: of('rate'), client: of('client'), server: of('server'), failures }];
  });
  const noise = joinedSpread(crews.map((crew) => crew.noise));
  return { concurrency, contenders: Object.fromEntries(contenders), noise };
}

const COUNTED = 50;
/** Some contenders ask their masters something now and then. The smallest of some counts is that of the locks alone. */
const ROUNDS = 3;

/** Commands that the servers receive for one acquired and released lock, per contender. */
async function commandsPerLock({ crew, urls, ttl }) {
  const commands = {};
  for (const contender of crew.members) {
    const counts = [];
    for (let round = 0; round < ROUNDS; round++) {
      const counter = await CommandCounter.start(urls);
      await crew.run(contender, 'cycles', { count: COUNTED, ttl });
      counts.push(await counter.stop());
    }
    commands[contender] = Math.min(...counts) / COUNTED;
  }
  return commands;
}

/** @param base the contender with which all are compared, unless `rivalOf` names another one for it */
export function printThroughput(
  where,
  { concurrency, contenders, noise },
  { base, title = base, rivalOf = () => base },
) {
  printTable(
    `${where}${concurrency} at a time: medians of the rounds (smallest-largest), and to ${title} round by round`,
    [
      ['', 'client us/lock', '', 'server us/lock', '', 'locks/s', '', 'failures'],
      ...Object.entries(contenders).map(([name, found]) => [
        name,
        ...['client', 'server', 'rate'].flatMap((one) => [
          range(found[one]),
          times(ratioOf(found[one], contenders[rivalOf(name)][one])),
        ]),
        found.failures.reduce((sum, [, count]) => sum + count, 0),
      ]),
    ],
  );
  for (const [name, { failures }] of Object.entries(contenders)) {
    if (failures.length > 0) console.log(`  ${name}: ${failures[0][0]}`);
  }
  const { min, max } = contenders[base].client;
  console.log(
    `  noise: ${base} itself differed by ${times(max / min)} between rounds; always the same work on the CPU`,
  );
  console.log(`  took ${range(noise)} ms`);
}

function printCommands(masters, commands) {
  printTable(`N = ${masters}, commands per lock`, [
    ['', 'commands', 'per master'],
    ...Object.entries(commands).map(([name, count]) => [name, figure(count), figure(count / masters)]),
  ]);
}

/** Compares the promises about the cost of a lock with the results for one number of masters. */
function checksOf({ masters, commands, throughput }) {
  const on = `N = ${masters}`;
  const { contenders } = throughput.find(({ concurrency }) => concurrency === PROMISED);
  return [
    ...throughput.flatMap((found) => failureChecks(on, found)),
    ...(commands[OURS] === undefined
      ? []
      : // A request to a master that was slow may be withdrawn before it is sent.
        [noMore(`${on}: a lock is at most 2 commands per master`, commands[OURS] / masters, 'commands', 2)]),
    ...rateChecks(on, contenders),
    ...(contenders[BEFORE] ? throughput.flatMap((found) => beforeChecks(on, found)) : []),
    ...(masters === 5 ? [...clientChecks(on, contenders), ...serverChecks(on, contenders)] : []),
  ];
}

function failureChecks(on, { concurrency, contenders }) {
  return [OURS, PLAIN]
    .filter((name) => contenders[name])
    .map((name) =>
      exactly(`${on}, ${concurrency} at a time: no failure of ${name}`, contenders[name].failures.length, 0),
    );
}

function beforeChecks(on, { concurrency, contenders }) {
  const ratio = (name) => ratioOf(contenders[OURS][name], contenders[BEFORE][name]);
  const at = `${on}, ${concurrency} at a time`;
  return [
    atMost(`${at}: client CPU at most 1.03 of before`, ratio('client'), 1.03),
    atMost(`${at}: server CPU at most 1.03 of before`, ratio('server'), 1.03),
    atLeast(`${at}: locks/s at least 0.97 of before`, ratio('rate'), 0.97),
  ];
}

function clientChecks(on, contenders) {
  const against = [
    ['redlock5', atMost, 'at most', GOALS.clientCpu],
    [FLOOR, below, 'below', 1],
  ];
  return against
    .filter(([other]) => contenders[other] && contenders[OURS])
    .map(([other, check, limit, bound]) => {
      const ratio = ratioOf(contenders[OURS].client, contenders[other].client);
      return check(`${on}: client CPU per lock ${limit} ${bound} of ${other}`, ratio, bound);
    });
}

function serverChecks(on, { [OURS]: ours, redlock5 }) {
  if (!ours || !redlock5) return [];
  const promise = `${on}: server CPU per lock at most ${GOALS.serverCpu} of redlock5`;
  return [atMost(promise, ratioOf(ours.server, redlock5.server), GOALS.serverCpu)];
}

function rateChecks(on, contenders) {
  const peers = Object.entries(contenders).filter(([name]) => isPeer(name));
  if (peers.length === 0) return [];
  const [fastest] = peers.map(([, { rate }]) => rate).sort((a, b) => b.median - a.median);
  const bounds = { [OURS]: GOALS.rate, [PLAIN]: GOALS.rate };
  return Object.entries(bounds)
    .filter(([name]) => contenders[name])
    .map(([name, bound]) => {
      const ratio = ratioOf(contenders[name].rate, fastest);
      return atLeast(`${on}: locks/s of ${name} at least ${bound} of the fastest peer`, ratio, bound);
    });
}
