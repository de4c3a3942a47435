import { describe, expect, it } from '@jest/globals';
import { PartitionState } from '../../../../lib/redis/cluster/partition-state.js';
import { reasonForSeal, type Seal, sealFrom } from '../../../../lib/redis/cluster/seal.js';
import { parseInfo } from '../../../../lib/redis/identity.js';

const at = (monotonic: number) => ({ monotonic, wall: 0 });
const seal = (nonce: string): Seal => ({
  ...{ run: 'r', replid: 'h', owner: 'a', epoch: '1', nonce, from: 0, maxTtl: 1_000 },
  ...{ reason: 'it was sealed', generation: 'g' },
});

describe('The state of a partition', () => {
  it('does not vote while its data is unknown', () => {
    const state = new PartitionState();
    expect(state.votesAt(at(1e12))).toBe(false);
    expect(state.quarantineAt(at(0), 3_000)).toEqual({ reason: 'its owner is not known yet', remaining: 3_000 });
  });

  it('votes when the wait of its seal is over', () => {
    const state = new PartitionState();
    state.accept(seal('n'), at(100), { left: 50, longest: 3_000 });
    expect(state.quarantineAt(at(149), 3_000)).toEqual({ reason: 'it was sealed', remaining: 1 });
    expect(state.quarantineAt(at(150), 3_000)).toBeUndefined();
  });

  it('votes at once under a seal whose wait has passed', () => {
    const state = new PartitionState();
    state.accept(seal('n'), at(100), { left: -5, longest: 3_000 });
    expect(state.votesAt(at(100))).toBe(true);
  });

  it('waits no shorter when the clock of the server is set forward meanwhile', () => {
    const state = new PartitionState();
    state.accept(seal('n'), at(100), { left: 500, longest: 3_000 });
    state.accept(seal('n'), at(110), { left: -1_000, longest: 3_000 });
    expect(state.votesAt(at(599))).toBe(false);
    expect(state.votesAt(at(600))).toBe(true);
  });

  it('waits no longer than the longest quarantine when the clock of the server is set back', () => {
    const state = new PartitionState();
    state.accept(seal('n'), at(100), { left: 1e9, longest: 3_000 });
    expect(state.votesAt(at(3_100))).toBe(true);
  });

  it('lets no answer to an earlier request count after a doubt, or under another seal', () => {
    const state = new PartitionState();
    state.accept(seal('n'), at(0), { left: 0, longest: 10 });
    const { epoch } = state;
    state.accept(seal('n'), at(1), { left: 0, longest: 10 });
    expect(state.epoch).toBe(epoch);
    state.doubt('moved');
    const later = state.epoch;
    expect(later).toBeGreaterThan(epoch);
    expect(state.quarantineAt(at(1), 10)).toEqual({ reason: 'moved', remaining: 10 });
    state.accept(seal('m'), at(2), { left: 0, longest: 10 });
    expect(state.epoch).toBeGreaterThan(later);
  });

  it('has its history compared at least once per interval, and anew under another seal', () => {
    const state = new PartitionState();
    state.accept(seal('n'), at(0), { left: 0, longest: 10 });
    expect(state.needsComparison(at(0), 1_000)).toBe(true);
    state.noteComparison(at(0));
    expect(state.needsComparison(at(1_000), 1_000)).toBe(false);
    expect(state.needsComparison(at(1_001), 1_000)).toBe(true);
    // A suspension: only the wall clock went on.
    expect(state.needsComparison({ monotonic: 1, wall: 1_001 }, 1_000)).toBe(true);
    state.accept(seal('m'), at(0), { left: 0, longest: 10 });
    expect(state.needsComparison(at(0), 1_000)).toBe(true);
  });
});

describe('A seal', () => {
  const identity = parseInfo('run_id:r\r\nmaster_replid:h\r\n', 0);
  const claim = { owner: 'a', epoch: 1 };

  it('is read from the fields of its hash', () => {
    const values = ['r', 'h', 'a', '1', 'n', '7', '1000', 'it was sealed', 'g'];
    expect(sealFrom(values)).toEqual({ ...seal('n'), from: 7 });
    expect(sealFrom(values.map(() => null))).toBeUndefined();
  });

  // Protocol 12.5
  it('shows known data only with the same process, history and claim', () => {
    expect(reasonForSeal(seal('n'), identity, claim)).toBeUndefined();
    expect(reasonForSeal(undefined, identity, claim)).toMatch('no seal');
    expect(reasonForSeal({ ...seal('n'), owner: 'b' }, identity, claim)).toMatch('another node');
    expect(reasonForSeal({ ...seal('n'), run: 's' }, identity, claim)).toMatch('restarted');
    expect(reasonForSeal({ ...seal('n'), replid: 'i' }, identity, claim)).toMatch('history');
    expect(reasonForSeal({ ...seal('n'), epoch: '2' }, identity, claim)).toMatch('meanwhile');
  });

  it('needs no claim where the service reports none', () => {
    expect(reasonForSeal({ ...seal('n'), owner: '', epoch: '' }, identity, claim)).toBeUndefined();
  });
});
