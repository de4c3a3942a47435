import { expect, it, jest } from '@jest/globals';
import type { MasterReply } from '../../lib/core/master.interface.js';
import { type ClusterNode, line, startCluster } from '../support/cluster.js';
import { allGranted, contenderOn, PATIENT, resourcesOn, TTL, UNGUARDED } from '../support/cluster-locks.js';
import { eventually } from '../support/eventually.js';
import type { Contender } from '../support/redlocks.js';

// An election takes two node timeouts, on a busy machine more.
jest.setTimeout(120_000);

/** One attempt each, sent in one turn. Resolves with the number of those that were granted. */
async function attempts(contender: Contender, resources: readonly string[]): Promise<number> {
  const asked = resources.map((resource) => contender.acquire(resource, TTL, { wait: 0 }));
  const outcomes = await Promise.allSettled(asked);
  return outcomes.filter(({ status }) => status === 'fulfilled').length;
}

// Protocol 12.7
it('A primary that is woken after its replica was promoted grants what clients have queued, but none of these votes counts, unless the guard is off', async () => {
  await using cluster = await startCluster({ nodeTimeout: 1_000 });
  const [old] = cluster.nodes as [ClusterNode];
  const replica = await cluster.replicaOf(old);
  const all = await resourcesOn(old, 20);
  const [guardedOnes, others] = [all.slice(0, 10), all.slice(10)];
  await using view = await cluster.viewpoint();
  const answers: MasterReply[] = [];
  const masterAnswered = (_master: string, operation: string, answer: MasterReply): void => {
    if (operation === 'acquire') answers.push(answer);
  };
  await using late = await contenderOn(view, undefined, { masterAnswered });
  await using unguarded = await contenderOn(view, UNGUARDED);
  for (const contender of [late, unguarded]) await allGranted(contender, all);
  cluster.pause(old);
  view.reachOnly([old]);
  await cluster.waitUntil((lines) => line(lines, replica).isPrimary);
  // It sends nothing to the old primary, which would carry that out, too.
  await using holder = await contenderOn({ urls: cluster.nodes.slice(1).map(({ url }) => url) });
  const locks = await Promise.all(all.map((resource) => holder.acquire(resource, TTL, { ...PATIENT, extend: true })));
  answers.length = 0;
  const asked = Promise.all([attempts(late, guardedOnes), attempts(unguarded, others)]);
  // What is sent in this turn arrives before the primary wakes.
  await new Promise((resolve) => setTimeout(resolve, 20));
  cluster.resume(old);
  const granted = await asked;
  expect(locks.filter(({ isHeld }) => !isHeld)).toEqual([]);
  expect(granted).toEqual([0, others.length]);
  // The primaries that could confirm the votes do not answer.
  await eventually(() => answers.length >= guardedOnes.length);
  expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['quarantined']));
  await Promise.all(locks.map((lock) => lock.release()));
});
