import { describe, expect, it } from '@jest/globals';
import { QuorumUnavailableError } from '../../../lib/core/errors.js';
import { Rig } from '../support/rig.js';
import { says, unreachable } from '../support/scripted-master.js';

/** Masters of which the first and the last are one server. */
function rigWithTwins(): Rig {
  const rig = new Rig();
  for (const [index, run] of ['one', 'other', 'one'].entries()) rig.masters[index]!.known = { run };
  rig.masters[2]!.becomeReady();
  return rig;
}

// Protocol 8.10
describe('A server under two addresses', () => {
  it('has one vote: it is no quorum of three', async () => {
    const rig = rigWithTwins();
    rig.masters[1]!.behaviour = says(unreachable);
    const attempt = rig.follow(rig.acquire('a', { wait: 0 }));
    await rig.clock.settle();
    expect(attempt.reason).toBeInstanceOf(QuorumUnavailableError);
    expect((attempt.reason as Error).message).toContain('it is the same server as m1');
  });

  it('votes by its first address', async () => {
    const rig = rigWithTwins();
    await rig.lock('a');
    expect(rig.masters.map((master) => master.requests('acquire').length)).toEqual([1, 1, 0]);
  });

  it('becomes two masters when another server answers at one of the addresses', async () => {
    const rig = rigWithTwins();
    rig.masters[2]!.known = { run: 'third' };
    rig.masters[2]!.becomeReady();
    await rig.lock('a');
    expect(rig.keys).toEqual([1, 1, 1]);
  });

  it('is not assumed where no server says which one it is', async () => {
    const rig = new Rig();
    rig.masters[0]!.becomeReady();
    await rig.lock('a');
    expect(rig.keys).toEqual([1, 1, 1]);
  });
});
