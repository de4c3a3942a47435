import { describe, expect, it } from '@jest/globals';
import { askAll } from '../../../lib/masters/ask-all.js';
import { type Outcome, QuorumCall, quorumOf } from '../../../lib/redlock/quorum.js';
import { LockNotAcquiredError } from '../../../lib/waiting/lock-not-acquired.error.js';
import { QuorumUnavailableError } from '../../../lib/redlock/errors.js';
import type { GrantedReply, InspectRequest, MasterReply } from '../../../lib/masters/master.interface.js';
import type { Reply } from '../../../lib/redlock/server.js';
import { acquiring } from '../../support/ask.js';
import { fc } from '../../support/properties.js';
import { Rig } from '../support/rig.js';
import {
  after,
  type Behaviour,
  cutOff,
  granted,
  hangs,
  held,
  obeys,
  only,
  refused,
  says,
  ScriptedMaster,
  unreachable,
} from '../support/scripted-master.js';
import { TestClock } from '../support/test-clock.js';

const request: InspectRequest = { op: 'inspect', keys: ['a'] };
const TIMEOUT = 50;

/** A call to masters that answer when the test lets them. */
class Poll {
  readonly clock = new TestClock();
  readonly masters: readonly ScriptedMaster[];
  readonly call: QuorumCall<ScriptedMaster>;
  isDecided = false;

  constructor(count: number, behaviour: Behaviour = hangs) {
    this.masters = Array.from({ length: count }, (_, i) => new ScriptedMaster(this.clock, `m${i + 1}`));
    for (const master of this.masters) master.behaviour = behaviour;
    const { masters, clock } = this;
    this.call = new QuorumCall({
      masters,
      send: (master, reply) => master.ask(request, reply),
      clock,
      timeout: TIMEOUT,
    });
    void this.call.decided.then(() => (this.isDecided = true));
  }

  async answer(index: number, answer: MasterReply): Promise<void> {
    this.masters[index]!.asked[0]!.reply(answer);
    await this.microtasks();
  }

  async microtasks(): Promise<void> {
    for (let i = 0; i < 4; i++) await Promise.resolve();
  }

  get kinds(): (Reply['kind'] | undefined)[] {
    return this.call.report.map(({ answer }) => answer?.kind);
  }

  get reached(): string[] {
    return this.call.reached.map(({ name }) => name);
  }
}

it('A quorum is more than half of the masters', () =>
  expect([1, 2, 3, 4, 5, 6, 7].map(quorumOf)).toEqual([1, 2, 2, 3, 3, 4, 4]));

describe('QuorumCall', () => {
  it('sends its requests to all masters even if the first ones decide before ask returns', async () => {
    const { call, masters, clock } = new Poll(5, says(granted));
    expect((await call.decided).outcome).toBe('granted');
    expect(masters.map(({ asked }) => asked.length)).toEqual([1, 1, 1, 1, 1]);
    expect(clock.pendingTimers).toBe(0);
  });

  describe('with a master that turned out to be the same server as another one', () => {
    /** A poll of three masters, of which the first has granted and is excluded before the decision. */
    async function pollWithExcluded(): Promise<Poll> {
      const poll = new Poll(3);
      await poll.answer(0, { kind: 'granted', fence: 7 });
      Object.assign(poll.masters[0]!, { isExcluded: true });
      return poll;
    }

    it('does not count its grant, nor its fencing counter, and is decided at once without it', async () => {
      const poll = await pollWithExcluded();
      await poll.answer(1, { kind: 'granted', fence: 4 });
      expect(poll.isDecided).toBe(false);
      await poll.answer(2, { kind: 'granted', fence: 5 });
      const fences = poll.call.answered.map((answer) => (answer as GrantedReply).fence);
      expect([poll.call.outcome, fences]).toEqual(['granted', [undefined, 4, 5]]);
      const refused = await pollWithExcluded();
      await refused.answer(1, held);
      expect(refused.isDecided).toBe(false);
      await refused.answer(2, granted);
      expect([refused.isDecided, refused.call.outcome]).toEqual([true, 'held']);
    });
  });

  it('counts every master as reached that may have received the request, now or later', async () => {
    const poll = new Poll(5);
    await poll.answer(0, unreachable);
    await poll.answer(1, cutOff);
    await poll.answer(2, refused);
    expect(poll.isDecided).toBe(true);
    expect(poll.reached).toEqual(['m2', 'm3', 'm4', 'm5']);
    await poll.answer(3, unreachable);
    expect(poll.reached).toEqual(['m2', 'm3', 'm5']);
  });

  it('reports when a quorum of masters could be free', async () => {
    const poll = new Poll(3);
    await poll.answer(0, { kind: 'held', remaining: 700 });
    expect(poll.call.freeAfter).toBeUndefined();
    await poll.answer(1, { kind: 'held', remaining: 300 });
    expect(poll.call.freeAfter).toBe(700);
    await poll.answer(2, { kind: 'held', remaining: 500 });
    expect(poll.call.freeAfter).toBe(500);
  });

  // Protocol 4.3
  it('decides every sequence of answers as a simple count does, and no later', async () => {
    const kinds = [granted, held, unreachable, cutOff, refused, undefined];
    const vote = fc.record({ order: fc.double({ noNaN: true }), answer: fc.constantFrom(...kinds) });
    await fc.assert(
      fc.asyncProperty(fc.array(vote, { minLength: 1, maxLength: 6 }), async (votes) => {
        const poll = new Poll(votes.length);
        const seen: MasterReply[] = [];
        const order = votes.map((_, i) => i).sort((a, b) => votes[a]!.order - votes[b]!.order);
        for (const index of order) {
          const { answer } = votes[index]!;
          if (!answer) continue;
          const before = oracle(seen, votes.length);
          if (before) break;
          seen.push(answer);
          await poll.answer(index, answer);
          expect(poll.isDecided).toBe(oracle(seen, votes.length) !== undefined);
        }
        await poll.clock.advance(TIMEOUT);
        expect(poll.isDecided).toBe(true);
        // What comes after the decision does not count.
        for (const index of order) await poll.answer(index, granted);
        expect(poll.call.outcome).toBe(oracle(seen, votes.length) ?? oracle(seen, votes.length, 'ended'));
        expect(poll.clock.pendingTimers).toBe(0);
      }),
      { numRuns: 1_000 },
    );
  }, 60_000);
});

/** The outcome after these answers, or `undefined` if it is not certain yet. */
function oracle(
  answers: readonly MasterReply[],
  masters: number,
  time: 'ended' | 'running' = 'running',
): Outcome | undefined {
  const count = (kind: MasterReply['kind']): number => answers.filter((answer) => answer.kind === kind).length;
  const missing = time === 'ended' ? 0 : masters - answers.length;
  if (count('granted') > masters / 2) return 'granted';
  if (count('granted') + missing > masters / 2) return undefined;
  return count('granted') + count('held') + missing > masters / 2 ? 'held' : 'unavailable';
}

it('askAll waits for every answer, but for none longer than the timeout, and ends with the last', async () => {
  const { clock, masters } = new Poll(3);
  masters[0]!.behaviour = says(held);
  const all = askAll({ masters, request, clock, timeout: TIMEOUT });
  masters[1]!.asked.at(-1)!.reply(granted);
  await clock.advance(TIMEOUT);
  expect((await all).map(({ answer }) => answer.kind)).toEqual(['held', 'granted', 'timeout']);
  for (const master of masters) master.behaviour = says(granted);
  expect(await askAll({ masters, request, clock, timeout: TIMEOUT })).toHaveLength(3);
  expect([clock.now, clock.pendingTimers]).toEqual([TIMEOUT, 0]);
});

const noWait = { wait: 0 };

const isHeld = only('acquire', says(held));

function rigOf(...behaviours: readonly Behaviour[]): Rig {
  const rig = new Rig({ masters: behaviours.length });
  rig.scriptEach(...behaviours);
  return rig;
}

/** A crashed holder has left the key behind on all masters, or on those from an index on. */
async function withLeftovers(rig = new Rig(), from = 0): Promise<Rig> {
  const request = acquiring(['lock:a'], 'crashed', { ttl: 20_000 });
  for (const { memory } of rig.masters.slice(from)) memory.ask(request, () => undefined);
  await rig.clock.settle();
  return rig;
}

/** One master is down, one hangs, and one has the key that a crashed holder left behind. */
function withoutQuorum({ isKnown = false } = {}): Promise<Rig> {
  const rig = rigOf(says(unreachable), hangs, obeys);
  if (isKnown) rig.masters[0]!.trouble = unreachable;
  return withLeftovers(rig, 2);
}

// Protocol 4.6
describe('A call that does not wait', () => {
  it('fails as an outage when one master is down, one hangs and one has a leftover key, also once it is known to hang', async () => {
    const rig = await withoutQuorum();
    const call = await rig.outcomeAfter(50, rig.acquire('a', noWait));
    expect(call.reason).toBeInstanceOf(QuorumUnavailableError);
    expect(String(call.reason)).toContain('m1: unreachable, connection refused; m2: no answer in time; m3: held');
    expect(call.at).toBe(50);
    for (let i = 0; i < 3; i++) {
      const { reason } = await rig.outcomeAfter(60, rig.acquire('a', noWait));
      expect(reason).toBeInstanceOf(QuorumUnavailableError);
    }
    expect(rig.silences).toEqual(['m2']);
  });

  it.each([
    ['another holder', held],
    ['a split vote', granted],
  ])('waits for the answer that distinguishes %s from an outage, and no longer', async (_, answer) => {
    const rig = rigOf(says(unreachable), only('acquire', after(20, says(answer))), isHeld);
    const call = await rig.outcomeAfter(19, rig.acquire('a', noWait));
    expect(call.state).toBe('pending');
    await rig.clock.advance(1);
    expect([call.reason, call.at, rig.clock.pendingTimers]).toEqual([expect.any(LockNotAcquiredError), 20, 0]);
  });

  it.each([
    ['a quorum answers that the key is held', LockNotAcquiredError, [isHeld, hangs, isHeld]],
    [
      'no quorum can vote, whatever the answer is',
      QuorumUnavailableError,
      [says(unreachable), hangs, only('acquire', says(refused))],
    ],
  ])('waits for no answer when %s', async (_, error, behaviours) => {
    const rig = rigOf(...behaviours);
    expect(await rig.outcomeOf(rig.acquire('a', noWait))).toMatchObject({ reason: expect.any(error), at: 0 });
  });
  it('ends with the reason of its signal while it waits for the missing answer', async () => {
    const rig = rigOf(says(unreachable), hangs, isHeld);
    const controller = new AbortController();
    const call = await rig.outcomeAfter(10, rig.acquire('a', { wait: 0, signal: controller.signal }));
    const reason = new Error('enough');
    controller.abort(reason);
    await rig.clock.settle();
    expect(call).toMatchObject({ state: 'rejected', reason, at: 10 });
    await rig.clock.advance(50);
    expect(rig.clock.pendingTimers).toBe(0);
  });
});

describe('A call that waits', () => {
  it('leaves its queue when its budget ends, before it waits for a missing answer', async () => {
    const rig = await withoutQuorum({ isKnown: true });
    const call = await rig.outcomeOf(rig.acquire('a', { wait: 20 }));
    const queued = rig.masters.flatMap((master) => master.requests('acquire')).filter(({ queue }) => queue);
    expect([queued.length, rig.clock.now]).toEqual([1, 0]);
    await rig.clock.advance(100);
    expect(rig.masters.flatMap((master) => master.times('leave'))).toEqual([20]);
    expect(call.at).toBe(50);
  });

  it('fails as an outage when masters that had answered "held" are gone', async () => {
    const rig = await withLeftovers();
    const call = await rig.outcomeAfter(10, rig.acquire('a', { wait: 2_000 }));
    for (const master of rig.masters) {
      if (master.memory.queued === 0) Object.assign(master, { behaviour: says(unreachable), trouble: unreachable });
    }
    await rig.clock.advance(2_100);
    expect(call.reason).toBeInstanceOf(QuorumUnavailableError);
  });

  it('fails as held when only the home master was asked last, and the others had answered "held"', async () => {
    const rig = await withLeftovers();
    const call = await rig.outcomeAfter(1_100, rig.acquire('a', { wait: 1_000 }));
    expect(call.reason).toBeInstanceOf(LockNotAcquiredError);
    expect(String(call.reason)).not.toContain('not waited for');
    expect(call.at).toBe(1_000);
  });
});
