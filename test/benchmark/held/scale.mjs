import { inRounds, spread } from '../measure/rounds.mjs';

const CONCURRENCY = 64;

/** Measures the cost of a lock while few or many others are held, with one process for each number of them. */
export async function besideHeld({ crew, ttl }, { heights, duration, rounds, warmUp }) {
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
export async function acrossKeys({ crew, ttl }, { spaces, limit, duration, rounds }) {
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
