import { FEW, librariesFor, OURS } from '../contenders.mjs';
import { onField } from '../measure/field.mjs';
import { inRounds, ratioOf, spread } from '../measure/figures.mjs';
import { CommandCounter } from '../measure/servers.mjs';
import { atMost, exactly, figure, GOALS, noMore, printTable, range, times } from '../report.mjs';

/** Contenders that do not extend held locks. */
const WITHOUT_EXTENSION = ['redlock4', 'murlock'];

const LENGTHS = {
  usual: {
    many: { masters: 5, ttl: 10_000, count: 10_000 },
    // A ttl of 10 s would need more than one processor for the masters: each lock is extended three times within it.
    most: { masters: 3, ttl: 60_000, count: 100_000 },
    scale: { masters: 3, ttl: 60_000, duration: 300, rounds: 5 },
    warmUp: 3_000,
    heights: [1, 1_000, 10_000, 100_000],
    spaces: [10, 1_000, 100_000, 1_000_000],
    limit: 30_000,
  },
  quick: {
    many: { masters: 3, ttl: 3_000, count: 2_000 },
    most: { masters: 3, ttl: 12_000, count: 20_000 },
    scale: { masters: 3, ttl: 12_000, duration: 200, rounds: 3 },
    warmUp: 1_000,
    heights: [1, 1_000, 10_000],
    spaces: [10, 1_000, 20_000],
    limit: 2_000,
  },
};

/** Measures the cost of holding many locks, and whether a lock costs more beside many others, or among many keys. */
export async function run({ quick, only = quick ? FEW : undefined }) {
  const { many, most, scale, ...lengths } = quick ? LENGTHS.quick : LENGTHS.usual;
  const contenders = librariesFor(many.masters, only).filter((name) => !WITHOUT_EXTENSION.includes(name));
  const found = { many: {} };
  const manyDone = onField({ ...many, contenders }, async (field) => {
    for (const name of contenders) found.many[name] = await holdMany(field, name, many).catch(gaveUp);
  });
  // The masters of what follows start now, so that they vote by the time they are needed.
  const mostDone = onField({ ...most, contenders: [OURS] }, async (field) => {
    await manyDone;
    found.most = await holdMany(field, OURS, most).catch(gaveUp);
    printMany([...Object.entries(found.many), [OURS, found.most]]);
  });
  const scaleDone = onField({ ...scale, contenders: lengths.heights.map((_, i) => `${OURS}@${i}`) }, async (field) => {
    await mostDone;
    const on = `ours, N = ${scale.masters}`;
    found.besideHeld = await besideHeld(field, { ...scale, ...lengths });
    printBesideHeld(`${on}: a lock beside others that are held`, found.besideHeld);
    found.acrossKeys = await acrossKeys(field, { ...scale, ...lengths });
    printAcrossKeys(`${on}: a lock among so many keys`, found.acrossKeys);
  });
  await Promise.all([manyDone, mostDone, scaleDone]);
  return { figures: found, checks: checksOf(found) };
}

/** Keeps the other contenders measurable. */
const gaveUp = (error) => ({ gaveUp: String(error.message) });

/** Counting timers slows a process down, so it runs with fewer locks and in a separate step. */
const TIMED = 500;

/** Measures what it costs one contender to hold many locks and to extend them. */
async function holdMany({ crew, urls, ttl }, contender, { count }) {
  const { perLock } = await crew.run(contender, 'timers', { count: TIMED, ttl });
  // Compiles the code, and lets everything grow that grows only once.
  await crew.run(contender, 'hold', { count: count / 10, ttl, extended: true });
  await crew.run(contender, 'letGo');
  const { bytes } = await crew.run(contender, 'hold', { count, ttl, extended: true });
  const counter = await CommandCounter.start(urls);
  const { share } = await crew.run(contender, 'rest', { duration: ttl });
  const commands = await counter.stop();
  const { failures } = await crew.run(contender, 'letGo');
  return {
    ...{ count, masters: urls.length, ttl },
    ...{ bytes, share, failures },
    commandRate: (commands / ttl) * 1000,
    /** Per lock and master, within one ttl. */
    commandsPerTtl: commands / count / urls.length,
    timers: perLock,
  };
}

const CONCURRENCY = 64;

/** Measures the cost of a lock while few or many others are held, with one process for each number of them. */
async function besideHeld({ crew, ttl }, { heights, duration, rounds, warmUp }) {
  const task = { concurrency: CONCURRENCY, duration, ttl };
  for (const [i, member] of crew.members.entries()) {
    // Holding many locks compiles the code of that process, so the other processes must warm up, too.
    await crew.run(member, 'load', { ...task, duration: warmUp });
    await crew.run(member, 'hold', { count: heights[i], ttl, extended: false });
  }
  const measured = await inRounds({ rounds, warmUps: 1 }, crew.members, async (member) => {
    const { cpu, locks } = await crew.run(member, 'load', task);
    return cpu / locks;
  });
  for (const member of crew.members) await crew.run(member, 'letGo');
  return crew.members.map((member, i) => ({ count: heights[i], client: spread(measured.get(member)) }));
}

/**
 * Measures the cost of a lock when few or many keys are in use, all of them used before, with one process for each
 * number.
 */
async function acrossKeys({ crew, ttl }, { spaces, limit, duration, rounds }) {
  const spaceOf = new Map(crew.members.map((member, i) => [member, spaces[i]]));
  const visits = new Map();
  for (const [member, space] of spaceOf) visits.set(member, await crew.run(member, 'visitKeys', { space, ttl, limit }));
  const measured = await inRounds({ rounds, warmUps: 1 }, crew.members, (member) =>
    crew.run(member, 'randomKeys', { space: spaceOf.get(member), ttl, duration }),
  );
  return [...spaceOf].map(([member, space]) => ({
    ...{ space, ...visits.get(member) },
    client: spread(measured.get(member)),
  }));
}

const KIB = 1024;
const MB = KIB * KIB;

/** @param contenders a name and what was found, for each row */
function printMany(contenders) {
  printTable('Locks held and extended', [
    [
      '',
      'held',
      'masters',
      'ttl s',
      'KiB each',
      'timers each',
      'commands/s',
      'per lock, ttl and master',
      'client CPU %',
      'lost',
    ],
    ...contenders.map(([name, found]) => [
      ...[
        found.gaveUp ? `${name}: ${found.gaveUp}` : name,
        ...(found.gaveUp ? ['-', '-', '-'] : [found.count, found.masters, found.ttl / 1_000]),
        figure(found.bytes / KIB),
        figure(found.timers),
        figure(found.commandRate),
      ],
      ...[figure(found.commandsPerTtl), figure(100 * found.share), found.failures ?? '-'],
    ]),
  ]);
}

function printBesideHeld(title, found) {
  const [first] = found;
  printTable(title, [
    ['held', 'client us/lock', `to ${first.count} held`],
    ...found.map(({ count, client }) => [count, range(client), times(ratioOf(client, first.client))]),
  ]);
}

function printAcrossKeys(title, found) {
  const [first] = found;
  printTable(title, [
    ['keys', 'used before', 'client us/lock', `to ${first.space} keys`, 'MB left of them'],
    ...found.map(({ space, visited, growth, client }) => [
      ...[space, visited, range(client), times(ratioOf(client, first.client)), figure(growth / MB)],
    ]),
  ]);
}

/** The largest ratio that the noise of the machine explains for a cost that should be constant. */
const CONSTANT = 1.3;

function checksOf({ many, most, besideHeld, acrossKeys }) {
  return [...manyChecks(many[OURS]), ...manyChecks(most), ...heldChecks(besideHeld), ...keyChecks(acrossKeys)];
}

function manyChecks(ours) {
  if (!ours) return [];
  if (ours.gaveUp) return [{ promise: 'many locks can be held', found: ours.gaveUp, kept: false }];
  const on = `${ours.count} held`;
  return [
    noMore(`${on}: at most ${GOALS.heldKiB} KiB each`, ours.bytes / KIB, 'KiB', GOALS.heldKiB),
    noMore(`${on}: timers are shared, at most a tenth of one each`, ours.timers, '', 0.1),
    noMore(
      `${on}: extensions are batched, at most a tenth of a command per lock, ttl, master`,
      ours.commandsPerTtl,
      '',
      0.1,
    ),
    exactly(`${on}: none lost`, ours.failures, 0),
  ];
}

function heldChecks(found) {
  const [first] = found;
  const last = found.at(-1);
  const promise = `client CPU beside ${last.count} held locks at most ${CONSTANT} of that beside ${first.count}`;
  return [atMost(promise, ratioOf(last.client, first.client), CONSTANT)];
}

function keyChecks(found) {
  const [first] = found;
  const last = found.at(-1);
  return [
    atMost(
      `client CPU with ${last.space} keys at most ${CONSTANT} of that with ${first.space}`,
      ratioOf(last.client, first.client),
      CONSTANT,
    ),
    noMore(`nothing is kept of ${last.visited} keys`, last.growth / MB, 'MB', 2),
  ];
}
