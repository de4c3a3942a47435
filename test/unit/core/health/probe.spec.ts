import { describe, expect, it } from '@jest/globals';
import { Rig } from '../../support/rig.js';
import { cutOff, hangs, obeysAfter, refused, says, unreachable } from '../../support/scripted-master.js';

describe('probe()', () => {
  it('reports the latency of each master in milliseconds', async () => {
    const rig = new Rig();
    rig.masters[1]!.behaviour = obeysAfter(7);
    rig.masters[2]!.behaviour = obeysAfter(20);
    const probe = rig.follow(rig.redlock.probe());
    await rig.clock.advance(30);
    expect(probe.value).toEqual({
      instance: 'unnamed',
      quorum: 2,
      canVote: true,
      masters: [0, 7, 20].map((latency, i) => ({ master: `m${i + 1}`, state: 'voting', latency })),
    });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('waits no longer than masterTimeout for hung masters, and does not count them', async () => {
    const rig = new Rig();
    rig.script(2, hangs);
    const probe = rig.follow(rig.redlock.probe());
    await rig.clock.advance(100);
    expect(probe.at).toBe(50);
    const silent = { state: 'silent', reason: 'no answer in time' };
    expect(probe.value).toMatchObject({ canVote: false, masters: [silent, silent, { state: 'voting', latency: 0 }] });
    expect(probe.value?.masters[0]).not.toHaveProperty('latency');
  });

  it('reports why a master cannot vote, with a known reason first', async () => {
    const rig = new Rig({ masters: 5 });
    const [a, b, c, d] = rig.masters;
    a!.behaviour = says(refused);
    b!.behaviour = says(cutOff);
    c!.trouble = unreachable;
    c!.behaviour = says(cutOff);
    d!.known = { version: '7.2.4', quarantine: { reason: 'it restarted', remaining: 900 } };
    expect(await rig.redlock.probe()).toEqual({
      instance: 'unnamed',
      quorum: 3,
      canVote: false,
      masters: [
        { master: 'm1', state: 'refused', reason: 'NOAUTH Authentication required.' },
        { master: 'm2', state: 'down', reason: 'connection lost' },
        { master: 'm3', state: 'down', reason: 'connection refused' },
        { master: 'm4', state: 'quarantined', reason: 'it restarted', remaining: 900, version: '7.2.4', latency: 0 },
        { master: 'm5', state: 'voting', latency: 0 },
      ],
    });
  });

  it('writes a key that no resource can have', async () => {
    const rig = new Rig();
    await rig.redlock.probe();
    await rig.redlock.inspector.inspect('probe');
    expect(rig.masters[0]!.requests('inspect')[0]!.keys).toEqual(['lock:probe']);
    expect(rig.masters[0]!.requests('probe')[0]!.keys).toEqual(['lock:\0probe']);
  });
});
