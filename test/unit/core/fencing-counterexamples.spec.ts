// Two shorter ways to agree on a token that look right and are not, on the same schedules as the right one.
import { describe, expect, it } from '@jest/globals';
import { fc } from '../../support/properties.js';
import { agree } from '../../../lib/core/fencing.js';

/** What one master has of one key. */
interface MasterState {
  owner: number | undefined;
  counter: number;
}

/** How a token that a quorum did not answer at once is confirmed. */
interface Protocol {
  /** Whether a master raises its counter only while the key is still the holder's. */
  readonly onlyIfOurs: boolean;
  /** Whether a larger answer becomes the token, which has to be confirmed anew. */
  readonly adopts: boolean;
}

const RIGHT: Protocol = { onlyIfOurs: true, adopts: true };
const TO_ANY_MAJORITY: Protocol = { onlyIfOurs: false, adopts: true };
const WITHOUT_ADOPTING: Protocol = { onlyIfOurs: true, adopts: false };

const MASTERS = 3;
const QUORUM = 2;

/**
 * One step of a client on one master. Nothing bounds how long it takes until the next one, so a schedule has everything
 * that slow networks, paused holders and clocks of any speed can do.
 */
interface Step {
  readonly op: 'acquire' | 'confirm' | 'expire';
  readonly client: number;
  readonly master: number;
}

/** Counters of the masters at the beginning, and what happens then. */
interface Schedule {
  readonly counters: readonly number[];
  readonly steps: readonly Step[];
}

class Client {
  /** Clients whose locks had come and gone before this one began. */
  readonly after: readonly Client[];
  private readonly asked = new Set<number>();
  private round = new Map<number, number>();
  private token = 0;
  isHolder = false;
  /** The token that stood in the end. */
  agreed: number | undefined;

  constructor(
    readonly id: number,
    private readonly protocol: Protocol,
    private readonly masters: readonly MasterState[],
    others: readonly Client[],
  ) {
    this.after = others.filter((other) => other.hasEnded);
  }

  get hasEnded(): boolean {
    return this.isHolder && this.masters.every(({ owner }) => owner !== this.id);
  }

  acquire(index: number): void {
    const master = this.masters[index]!;
    if (this.asked.has(index)) return;
    this.asked.add(index);
    if (master.owner !== undefined) return;
    master.owner = this.id;
    master.counter++;
    // Answers that come after the quorum are not counted.
    if (!this.isHolder) this.answer(index, master.counter);
  }

  confirm(index: number): void {
    const master = this.masters[index]!;
    if (!this.isHolder || this.agreed !== undefined || this.round.has(index)) return;
    if (this.protocol.onlyIfOurs && master.owner !== this.id) return;
    master.counter = Math.max(master.counter, this.token);
    this.answer(index, master.counter);
  }

  expire(index: number): void {
    const master = this.masters[index]!;
    if (master.owner === this.id) master.owner = undefined;
  }

  private answer(index: number, counter: number): void {
    this.round.set(index, counter);
    if (this.round.size < QUORUM) return;
    const answers = [...this.round.values()];
    const { token, agreed } = agree(this.token, answers, QUORUM);
    // Whoever does not adopt takes "at least my token" for "my token".
    const isKept = this.isHolder && !this.protocol.adopts;
    if (!isKept) this.token = token;
    if (agreed || isKept) this.agreed = this.token;
    this.isHolder = true;
    this.round = new Map();
  }
}

function play(protocol: Protocol, { counters, steps }: Schedule): readonly Client[] {
  const masters = counters.map((counter): MasterState => ({ owner: undefined, counter }));
  const clients: Client[] = [];
  for (const { op, client: id, master } of steps) {
    let client = clients.find((other) => other.id === id);
    if (!client) clients.push((client = new Client(id, protocol, masters, clients)));
    client[op](master);
  }
  return clients;
}

/** Tokens in the order in which the clients began; `undefined` where none was agreed on. */
function tokensOf(protocol: Protocol, schedule: Schedule): (number | undefined)[] {
  return play(protocol, schedule).map(({ agreed }) => agreed);
}

/** What is wrong with the tokens, if anything is. */
function faultOf(protocol: Protocol, schedule: Schedule): 'duplicate' | 'out of order' | undefined {
  const given = play(protocol, schedule).filter(({ agreed }) => agreed !== undefined);
  if (new Set(given.map(({ agreed }) => agreed)).size < given.length) return 'duplicate';
  const isLate = given.some(({ agreed, after }) => after.some((earlier) => (earlier.agreed ?? 0) > agreed!));
  return isLate ? 'out of order' : undefined;
}

const [A, B, C] = [0, 1, 2];

function on(op: Step['op'], client: number, ...masters: number[]): Step[] {
  return masters.map((master) => ({ op, client, master }));
}

describe('Writing a token back to any majority, whoever holds the key there', () => {
  const schedule: Schedule = {
    counters: [10, 0, 1],
    steps: [
      // Told 11 and 1, the first holder has to confirm 11, but is paused until its keys have expired.
      ...on('acquire', 1, A, B),
      ...on('expire', 1, A, B),
      // The second one is told 2 by both, which stands at once.
      ...on('acquire', 2, B, C),
      // The first one wakes up.
      ...on('confirm', 1, B, C),
    ],
  };

  it('gives a holder whose lock has ended a larger token than its successor', () => {
    expect(tokensOf(TO_ANY_MAJORITY, schedule)).toEqual([11, 2]);
    expect(faultOf(TO_ANY_MAJORITY, schedule)).toBe('out of order');
  });

  it('is refused by masters that look at the key', () => {
    expect(tokensOf(RIGHT, schedule)).toEqual([undefined, 2]);
  });

  it('gives out the same token twice', () => {
    const twice: Schedule = {
      counters: [4, 0, 0],
      steps: [
        ...on('acquire', 1, A, B),
        ...on('expire', 1, B),
        // The second holder is told 2 and 1, and nobody has heard of the first one's 5 yet.
        ...on('acquire', 2, B, C),
        // It has been before everybody to B and C; now it is told its own 5, which the second one draws at A next.
        ...on('confirm', 1, B, C),
        ...on('confirm', 2, B, C),
        ...on('confirm', 2, B, C),
      ],
    };
    expect(tokensOf(TO_ANY_MAJORITY, twice)).toEqual([5, 5]);
    expect(tokensOf(RIGHT, twice)).toEqual([undefined, 2]);
  });
});

describe('Confirming a token without adopting larger answers', () => {
  const schedule: Schedule = {
    counters: [4, 2, 4],
    steps: [
      // Told 5 and 3, the first holder has to confirm 5. B forgets it too early: the locks will overlap.
      ...on('acquire', 1, A, B),
      ...on('expire', 1, B),
      // The second one is told 4 and 5, and confirms 5.
      ...on('acquire', 2, B, C),
      ...on('confirm', 2, B, C),
      ...on('expire', 2, C),
      // What the first one asked of C at the beginning arrives there. C is at 6 now.
      ...on('acquire', 1, C),
      ...on('confirm', 1, A, C),
      ...on('confirm', 1, A, C),
    ],
  };

  it('gives out the same token twice', () => {
    expect(tokensOf(WITHOUT_ADOPTING, schedule)).toEqual([5, 5]);
    expect(faultOf(WITHOUT_ADOPTING, schedule)).toBe('duplicate');
  });

  it('does not when the larger answer is confirmed in another round', () => {
    expect(tokensOf(RIGHT, schedule)).toEqual([6, 5]);
    expect(faultOf(RIGHT, schedule)).toBeUndefined();
  });
});

describe('Over schedules that nobody chose', () => {
  const step = fc.record({
    op: fc.constantFrom<Step['op']>('acquire', 'acquire', 'confirm', 'confirm', 'expire'),
    client: fc.integer({ min: 1, max: 3 }),
    master: fc.nat(MASTERS - 1),
  });
  const schedules = fc.record({
    counters: fc.array(fc.nat(5), { minLength: MASTERS, maxLength: MASTERS }),
    steps: fc.array(step, { minLength: 10, maxLength: 40, size: 'max' }),
  });
  const sample = fc.sample(schedules, { numRuns: 20_000, seed: 4 });

  function faults(protocol: Protocol): number {
    return sample.filter((schedule) => faultOf(protocol, schedule) !== undefined).length;
  }

  it.each([
    ['writing back to any majority', TO_ANY_MAJORITY],
    ['not adopting', WITHOUT_ADOPTING],
  ])('%s fails now and then', (_, protocol) => {
    expect(faults(protocol)).toBeGreaterThan(0);
  });

  it('the right protocol never fails on the same ones, though it gives out many tokens', () => {
    expect(faults(RIGHT)).toBe(0);
    const given = sample.flatMap((schedule) => tokensOf(RIGHT, schedule)).filter((token) => token !== undefined);
    expect(given.length).toBeGreaterThan(sample.length / 4);
  });

  it('the right protocol never fails', () => {
    fc.assert(
      fc.property(schedules, (schedule) => faultOf(RIGHT, schedule) === undefined),
      { numRuns: 5_000 },
    );
  });
});
