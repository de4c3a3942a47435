/** So many at a time that a delayed network does not make it last. */
const CALLERS = 256;
/** Locks of each contender after which its code is compiled, and the cost of a lock hardly falls any further. */
const LOCKS = { usual: 30_000, quick: 5_000 };

/** Lets all contenders run until they are in a steady state. Rounds that count begin after it. */
export async function warmUp({ crew, ttl }, { quick }) {
  const task = { callers: CALLERS, count: quick ? LOCKS.quick : LOCKS.usual, ttl };
  for (const member of crew.members) await crew.run(member, 'warmUp', task);
}
