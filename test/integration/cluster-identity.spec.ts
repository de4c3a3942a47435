import { describe, expect, it, jest } from '@jest/globals';
import { startCluster } from '../support/cluster.js';
import { allGranted, contenderOn, resourceOn, SETTINGS, UNGUARDED } from '../support/cluster-locks.js';

jest.setTimeout(120_000);

const RUN = /run_id:([0-9a-f]{40})/g;
let runs = 0;

/** What a proxy may do to the answers of a server. The texts keep their lengths, which RESP states. */
const PROXIES = {
  hides: (text: string): string => text.replaceAll('run_id:', 'no_one:'),
  fakes: (text: string): string => text.replaceAll(RUN, () => `run_id:${String(++runs).padStart(40, '0')}`),
};

const REASONS = {
  hides: 'it does not report which process it is',
  fakes: 'it reports another process with each answer',
};

describe.each(Object.keys(PROXIES) as (keyof typeof PROXIES)[])('A proxy that %s the run of a server', (does) => {
  it('is refused with the guard on, and serves locks without it', async () => {
    await using cluster = await startCluster({ primaries: 1, replicas: 0 });
    const [node] = cluster.nodes;
    await using view = await cluster.viewpoint();
    view.proxy(node!).replies.rewrite = (chunk) => Buffer.from(PROXIES[does](chunk.toString('latin1')), 'latin1');
    await expect(contenderOn(view, SETTINGS)).rejects.toThrow(REASONS[does]);
    await using contender = await contenderOn(view, UNGUARDED);
    await allGranted(contender, [await resourceOn(node!)]);
  });
});
