import { inRounds, spread } from '../measure/rounds.mjs';
import { PERMITS } from './limit.mjs';

/** Members of the crew. */
export const EXCLUSIVE = 'ours';
export const SHARED = 'ours-shared';
export const PERMIT = 'ours-permits';

/** The crowds that compete with each other, each with a title, a member of the crew, and the number of its keys. */
export const CROWDS = {
  permits: {
    callers: 64,
    subject: { title: `${PERMITS} permits of one name`, member: PERMIT, keys: 1 },
    others: [{ title: `locks on ${PERMITS} keys`, member: EXCLUSIVE, keys: PERMITS }],
  },
  shared: {
    callers: 16,
    subject: { title: 'shared locks on one key', member: SHARED, keys: 1 },
    others: [
      { title: 'shared locks on a key of each caller', member: SHARED, keys: 16 },
      { title: 'locks on a key of each caller', member: EXCLUSIVE, keys: 16 },
      { title: 'locks on one key', member: EXCLUSIVE, keys: 1 },
    ],
  },
};

/** Measures locks per second, and CPU of the client, of crowds in one process each that do nothing under the lock. */
export async function crowds({ crew, ttl }, { callers, subject, others }, { duration, rounds }) {
  const measured = await inRounds({ rounds, warmUps: 2 }, [subject, ...others], async ({ member, keys }) => {
    const { locks, elapsed, cpu, failures } = await crew.run(member, 'crowd', { callers, keys, duration, ttl });
    return { rate: (locks / elapsed) * 1000, client: cpu / locks, failures };
  });
  const [mine, ...rest] = [...measured].map(([{ title }, found]) => ({
    title,
    rate: spread(found.map(({ rate }) => rate)),
    client: spread(found.map(({ client }) => client)),
    failures: found.flatMap(({ failures }) => failures),
  }));
  return { callers, subject: mine, others: rest };
}
