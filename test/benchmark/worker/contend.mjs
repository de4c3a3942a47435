import { sharedNow, sleep } from '../measure/numbers.mjs';

/**
 * Several waiters of this process request the same key repeatedly, from `start` to `end`.
 *
 * @param rest milliseconds between a release and the next request
 * @param keys the number of keys, if the waiters share several; each waiter always requests the same one
 */
export async function contend(contender, { key, ttl, section, rest, waiters, start, end, keys = 1 }) {
  const sections = [];
  const failures = [];

  async function waiter(_, own) {
    const wanted = keys === 1 ? key : `${own % keys}:${key}`;
    while (sharedNow() < end) {
      const times = [sharedNow()];
      try {
        const release = await contender.acquire(wanted, ttl);
        times.push(sharedNow());
        await sleep(section);
        times.push(sharedNow());
        sections.push(times);
        const released = release();
        // After the end of the round, the key is freed so that the round can finish. Failures from then on do not
        // count.
        if (sharedNow() < end) await released;
        else released.catch(() => {});
        if (rest) await sleep(rest);
      } catch (error) {
        if (sharedNow() < end) failures.push(String(error?.message ?? error));
        await sleep(1);
      }
    }
  }

  await sleep(start - sharedNow());
  await Promise.all(Array.from({ length: waiters }, waiter));
  return { sections, failures };
}
