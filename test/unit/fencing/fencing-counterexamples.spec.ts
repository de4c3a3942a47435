// Incorrect shortcuts to agree on a token, on the same schedules as the agreement of the library.
import { describe, expect, it } from '@jest/globals';
import { TokenAgreement } from '../../../lib/fencing/fencing-token.js';
import {
  type MasterReply,
  type DrawRequest,
  GRANTED,
  GONE,
  type HeldReply,
  type Master,
} from '../../../lib/masters/master.interface.js';
import { fc } from '../../support/properties.js';
import { type ClientFault, WrongAgreement } from '../../support/wrong-agreement.js';

/** The fault of a protocol. */
type Fault =
  | ClientFault
  /** A master draws, whichever client holds the key there. */
  | 'draws for any'
  /** A master that may have lost its counters grants and draws like any other. */
  | 'counts quarantined masters'
  /** The floor is the master's clock when it was asked first. */
  | 'reads its clock once';

const MASTERS = 3;
const QUORUM = 2;
const HELD: HeldReply = { kind: 'held', remaining: undefined };
const QUARANTINED: MasterReply = { kind: 'quarantined', reason: 'it lost its data', remaining: 1 };

/** The state of one key on one master. */
class MasterState {
  owner: number | undefined;
  isQuarantined = false;
  private runs = 0;
  private firstFloor: number | undefined;
  readonly port: Master;

  constructor(
    public counter: number,
    private readonly fault: Fault | undefined,
    /** Seconds by which its clock is late. */
    private readonly late: number,
  ) {
    this.port = { identity: () => ({ run: `run ${this.runs}` }) } as Master;
  }

  acquire(client: number): MasterReply {
    if (this.owner !== undefined) return HELD;
    if (this.isKeptOut) return QUARANTINED;
    this.owner = client;
    return GRANTED;
  }

  extend(client: number): MasterReply {
    if (this.owner !== undefined && this.owner !== client) return HELD;
    if (this.isKeptOut) return QUARANTINED;
    return this.owner === undefined ? GONE : GRANTED;
  }

  heal(client: number): MasterReply {
    if (this.owner !== undefined && this.owner !== client) return HELD;
    this.owner = client;
    return GRANTED;
  }

  draw(client: number, { atLeast, isFirst }: DrawRequest, now: number): MasterReply {
    if (this.owner !== client && this.fault !== 'draws for any') return HELD;
    if (this.isKeptOut) return QUARANTINED;
    this.firstFloor ??= now - this.late;
    const floor = this.fault === 'reads its clock once' ? this.firstFloor : now - this.late;
    this.counter = Math.max(atLeast, isFirst ? Math.max(this.counter + 1, floor) : this.counter);
    return { ...GRANTED, fence: this.counter };
  }

  /** Loses its keys and counters. The loss is noticed. */
  lose(): void {
    this.owner = undefined;
    this.counter = 0;
    this.runs++;
    this.isQuarantined = true;
  }

  private get isKeptOut(): boolean {
    return this.isQuarantined && this.fault !== 'counts quarantined masters';
  }
}

/**
 * One step of a schedule. The time until the next step is unbounded, so a schedule covers everything that slow
 * networks, paused holders and clocks of any speed can do.
 */
interface Step {
  readonly op:
    | 'acquire' // the client asks all masters for the key
    | 'deliver' // the oldest request of the client reaches the master, and its answer reaches the client
    | 'mute' // the request arrives, but its answer is lost
    | 'drop' // the request is lost
    | 'delay' // the oldest request is an acquisition, and arrives after the others
    | 'ask' // the client requests its token
    | 'again' // the round ends with the answers so far, and another one begins
    | 'extend' // the client asks all masters to renew the key
    | 'expire' // the client's key is gone on the master
    | 'lose' // the master loses its data, and is quarantined
    | 'readmit' // the master votes again
    | 'sleep'; // an hour passes
  readonly client: number;
  readonly master: number;
}

interface Schedule {
  /** Initial counters of the masters. */
  readonly counters?: readonly number[];
  /** Seconds by which the clock of each master is late. */
  readonly late?: readonly number[];
  readonly steps: readonly Step[];
}

interface Message {
  readonly isAcquisition: boolean;
  readonly carryOut: () => MasterReply;
  readonly hear: (answer: MasterReply) => void;
}

const KEYS = ['k'];

class Client {
  readonly agreement: TokenAgreement;
  askedAt = Infinity;
  agreedAt = Infinity;
  private readonly queues: readonly Message[][] = Array.from({ length: MASTERS }, () => []);
  /** The number of heals without an answer. */
  private readonly heals = new Map<Master, number>();
  private readonly healed = new Map<Master, number>();
  private grants: number | undefined;
  private round = 0;
  private answers: number[] = [];

  constructor(
    readonly id: number,
    private readonly world: World,
  ) {
    const { fault } = world;
    const timesSetAgain = (master: Master): number => this.healed.get(master) ?? 0;
    const mayBeSet = (master: Master): boolean => (this.heals.get(master) ?? 0) > 0;
    const names = { keys: KEYS, token: String(id), timesSetAgain, mayBeSet };
    this.agreement = isOfClient(fault) ? new WrongAgreement(fault, QUORUM, names) : new TokenAgreement(QUORUM, names);
  }

  get agreed(): number | undefined {
    return this.agreement.agreed;
  }

  private get hasToken(): boolean {
    return this.agreed !== undefined;
  }

  acquire(): void {
    if (this.grants !== undefined) return;
    this.grants = 0;
    this.send(true, (master) => ({
      carryOut: () => master.acquire(this.id),
      hear: ({ kind }) => (this.grants = (this.grants ?? 0) + (kind === 'granted' ? 1 : 0)),
    }));
  }

  ask(): void {
    if ((this.grants ?? 0) < QUORUM || this.askedAt < Infinity) return;
    this.askedAt = this.world.moment;
    this.begin();
  }

  again(): void {
    if (this.askedAt === Infinity || this.hasToken) return;
    this.agreement.conclude(this.answers);
    this.begin();
  }

  extend(): void {
    if ((this.grants ?? 0) < QUORUM) return;
    this.send(false, (master, index) => ({
      carryOut: () => master.extend(this.id),
      hear: ({ kind }) => {
        if (kind === 'gone') this.heal(master, index);
      },
    }));
  }

  private heal(master: MasterState, index: number): void {
    const { heals, healed } = this;
    const { port } = master;
    heals.set(port, (heals.get(port) ?? 0) + 1);
    healed.set(port, (healed.get(port) ?? 0) + 1);
    this.queues[index]!.push({
      isAcquisition: false,
      carryOut: () => master.heal(this.id),
      hear: () => void heals.set(port, (heals.get(port) ?? 0) - 1),
    });
  }

  deliver(index: number): void {
    const message = this.queues[index]!.shift();
    message?.hear(message.carryOut());
  }

  mute(index: number): void {
    this.queues[index]!.shift()?.carryOut();
  }

  drop(index: number): void {
    this.queues[index]!.shift();
  }

  delay(index: number): void {
    const queue = this.queues[index]!;
    if (queue[0]?.isAcquisition) queue.push(queue.shift()!);
  }

  private begin(): void {
    const round = ++this.round;
    this.answers = [];
    this.send(false, (master) => {
      const { request, judge } = this.agreement.drawFrom(master.port, this.world.now);
      // What is not sent to a quarantined master cannot take effect there later.
      const isOut = master.isQuarantined && this.world.fault !== 'counts quarantined masters';
      return {
        carryOut: () => (isOut ? QUARANTINED : master.draw(this.id, request, this.world.now)),
        hear: (answer) => this.count(round, judge(answer)),
      };
    });
  }

  private count(round: number, answer: MasterReply): void {
    if (round !== this.round || this.hasToken || answer.kind !== 'granted') return;
    this.answers.push(answer.fence!);
    if (this.answers.length < QUORUM) return;
    this.conclude();
  }

  private conclude(): void {
    this.agreement.conclude(this.answers);
    if (this.hasToken) this.agreedAt = this.world.moment;
    else this.begin();
  }

  private send(
    isAcquisition: boolean,
    message: (master: MasterState, index: number) => Omit<Message, 'isAcquisition'>,
  ): void {
    this.world.masters.forEach((master, index) => {
      this.queues[index]!.push({ isAcquisition, ...message(master, index) });
    });
  }
}

class World {
  moment = 0;
  /** Seconds. */
  now = 0;
  readonly masters: readonly MasterState[];
  private readonly clients = new Map<number, Client>();

  constructor(
    readonly fault: Fault | undefined,
    readonly schedule: Schedule,
  ) {
    const { counters = [0, 0, 0], late = [] } = schedule;
    this.masters = counters.map((counter, index) => new MasterState(counter, fault, late[index] ?? 0));
  }

  play(): readonly Client[] {
    for (const step of this.schedule.steps) {
      this.moment++;
      this.take(step);
    }
    return [...this.clients.values()];
  }

  private take({ op, client: id, master: index }: Step): void {
    const master = this.masters[index]!;
    if (op === 'expire') {
      if (master.owner === id) master.owner = undefined;
    } else if (op === 'lose') {
      master.lose();
    } else if (op === 'readmit') {
      master.isQuarantined = false;
    } else if (op === 'sleep') {
      this.now += 3_600;
    } else {
      const client = this.clients.get(id) ?? new Client(id, this);
      this.clients.set(id, client);
      client[op](index);
    }
  }
}

function isOfClient(fault: Fault | undefined): fault is ClientFault {
  const ofClients: readonly (Fault | undefined)[] = [
    ...(['confirms anywhere', 'never draws again', 'keeps healed masters'] as const),
    ...(['adopts nothing', 'draws anew'] as const),
  ];
  return ofClients.includes(fault);
}

/** Tokens in the order in which the clients began; `undefined` where none was agreed on. */
function tokensOf(fault: Fault | undefined, schedule: Schedule): (number | undefined)[] {
  return new World(fault, schedule).play().map(({ agreed }) => agreed);
}

/** Whether two clients have one token, or a later one has a smaller token. */
function isViolated(fault: Fault | undefined, schedule: Schedule): boolean {
  const given = new World(fault, schedule).play().filter(({ agreed }) => agreed !== undefined);
  if (new Set(given.map(({ agreed }) => agreed)).size < given.length) return true;
  return given.some((later) =>
    given.some((earlier) => earlier.agreedAt < later.askedAt && earlier.agreed! > later.agreed!),
  );
}

const [A, B, C] = [0, 1, 2];

function on(op: Step['op'], client: number, ...masters: number[]): Step[] {
  return (masters.length === 0 ? [A] : masters).map((master) => ({ op, client, master }));
}

/** The client takes the key on these masters; its requests to the other masters stay in flight forever. */
function take(client: number, ...masters: number[]): Step[] {
  return [...on('acquire', client), ...on('deliver', client, ...masters)];
}

/** The client requests its token from these masters, in this many rounds; no request reaches the other masters. */
function drawing(client: number, rounds: number, ...masters: number[]): Step[] {
  return [...on('ask', client), ...Array.from({ length: rounds }, () => on('deliver', client, ...masters)).flat()];
}

describe('Drawing for a key that the client no longer holds', () => {
  const schedule: Schedule = {
    counters: [4, 0, 0],
    steps: [
      ...take(1, A, B),
      // B forgets the first holder too early: the locks overlap.
      ...on('expire', 1, B),
      ...on('acquire', 2),
      ...on('deliver', 2, B, C),
      ...on('ask', 1),
      ...on('deliver', 1, B),
      ...on('ask', 2),
      ...on('deliver', 2, B),
      // The first client receives 1 and 5, and writes 5 to B, where the second client has drawn 2.
      ...on('deliver', 1, A, A, B),
      // The second client receives its own 2 and 1, and then from B the 5 of the first client.
      ...on('deliver', 2, C, B, C, B, C),
    ],
  };

  it('gives out the same token twice', () => {
    expect(tokensOf('draws for any', schedule)).toEqual([5, 5]);
  });

  it('is refused by masters that check the key', () => {
    const [first, second] = tokensOf(undefined, schedule);
    expect(first).toBeUndefined();
    expect(second).toBeGreaterThan(0);
  });
});

describe('A number of the first holder that equals a number of the second', () => {
  /** @param missing what happens to the first holder's first draw at C */
  function schedule(missing: Step['op'][]): Schedule {
    return {
      counters: [4, 2, 4],
      steps: [
        ...take(1, A, B),
        // B forgets the first holder too early: the locks overlap.
        ...on('expire', 1, B),
        // A answers 5 to the first holder, and B refuses its request. The request to C has not arrived there.
        ...on('ask', 1),
        ...on('deliver', 1, A, B),
        ...missing.flatMap((op) => on(op, 1, C)),
        ...on('again', 1),
        // The second holder draws 3 and 5, and both masters confirm 5.
        ...take(2, B, C),
        ...drawing(2, 2, B, C),
        ...on('expire', 2, C),
        // The first request of the first holder to C arrives there.
        ...on('deliver', 1, A, C, C, A, C),
      ],
    };
  }

  it.each(['confirms anywhere', 'never draws again', 'adopts nothing'] as const)(
    'is given out twice by a protocol that %s',
    (fault) => {
      // The draw is lost, so that C counts neither for the first holder nor against it.
      const lost = schedule(['delay', 'drop']);
      expect(tokensOf(fault, lost)).toEqual([5, 5]);
    },
  );

  it('is given out once if C draws for the first holder and the larger number is adopted', () => {
    const [first, second] = tokensOf(undefined, schedule(['delay', 'drop']));
    expect([second, first]).toEqual([5, 6]);
  });
});

describe('A master on which an extension set the key again', () => {
  const schedule: Schedule = {
    counters: [4, 0, 4],
    steps: [
      ...take(1, A, B, C),
      // The first holder draws 5 at A and 1 at B, and is paused before any master confirms 5.
      ...on('ask', 1),
      ...on('deliver', 1, A, B),
      // Both B and C forget it too early, and the second holder draws 2 and 5: both masters confirm 5.
      ...on('expire', 1, B, C),
      ...take(2, B, C),
      ...drawing(2, 2, B, C),
      ...on('expire', 2, B, C),
      // The first holder extends, and requests its token again.
      ...on('drop', 1, A, B, C, C),
      ...on('extend', 1),
      ...on('deliver', 1, A, B, C),
      ...on('again', 1),
      ...on('deliver', 1, A, B, B, A, B, A, B),
    ],
  };

  it('leads to the same token twice if it stays among those that have drawn', () => {
    expect(tokensOf('keeps healed masters', schedule)).toEqual([5, 5]);
  });

  it('draws anew, and therefore a larger number', () => expect(tokensOf(undefined, schedule)).toEqual([6, 5]));
});

describe('A master that lost its counters', () => {
  /** The first holder has a token from A and B, by the clock that is ahead. A loses its data. */
  const lost: Step[] = [...on('sleep', 0), ...take(1, A, B), ...drawing(1, 2, A, B), ...on('lose', 0, A)];

  it('moves tokens back if its answers count at once', () => {
    const steps = [...lost, ...take(2, A, C), ...drawing(2, 1, A, C)];
    const late = [10, 0, 10];
    expect(tokensOf('counts quarantined masters', { steps, late })).toEqual([3_600, 3_590]);
    expect(tokensOf(undefined, { steps, late })).toEqual([3_600, undefined]);
  });

  it('moves tokens back if it draws for its clock at an earlier draw', () => {
    const steps = [
      ...lost,
      ...[...on('lose', 0, B), ...on('sleep', 0), ...on('readmit', 0, A), ...on('readmit', 0, B)],
      ...[...take(2, A, B), ...drawing(2, 1, A, B)],
    ];
    expect(tokensOf('reads its clock once', { steps })).toEqual([3_600, 3_600]);
    expect(tokensOf(undefined, { steps })).toEqual([3_600, 7_200]);
  });

  it('moves no token back although masters are five minutes late, less than they wait', () => {
    const steps = [
      ...lost,
      ...[...on('lose', 0, B), ...on('sleep', 0), ...on('readmit', 0, A), ...on('readmit', 0, B)],
      ...[...take(2, B, C), ...drawing(2, 1, B, C)],
    ];
    expect(tokensOf(undefined, { late: [0, 300, 300], steps })).toEqual([3_600, 6_900]);
  });
});

it('Drawing anew in each round never agrees if masters differ', () => {
  const schedule = { counters: [4, 0, 0], steps: [...take(1, A, B), ...drawing(1, 20, A, B)] };
  expect(tokensOf('draws anew', schedule)).toEqual([undefined]);
  expect(tokensOf(undefined, schedule)).toEqual([5]);
});

describe('Over random schedules', () => {
  const often = ['deliver', 'deliver', 'deliver', 'deliver', 'deliver', 'deliver'] as const;
  /** The first client takes the key, loses it on a master, and the second one takes it there and elsewhere. */
  const overlap = [...take(1, A, B), ...on('expire', 1, B), ...take(2, B, C)];
  const step = fc.record({
    op: fc.constantFrom<Step['op']>(
      ...([...often, ...often, ...often, 'ask', 'ask', 'again', 'again', 'mute', 'drop', 'delay'] as const),
      ...(['expire', 'expire', 'expire', 'extend'] as const),
    ),
    client: fc.integer({ min: 1, max: 2 }),
    master: fc.nat(MASTERS - 1),
  });
  const schedules = fc.record({
    counters: fc.array(fc.nat(4), { minLength: MASTERS, maxLength: MASTERS }),
    steps: fc
      .array(step, { minLength: 60, maxLength: 100, size: 'max' })
      .map((steps) => [...overlap, ...on('ask', 1), ...steps]),
  });
  const sample = fc.sample(schedules, 10_000);

  function violations(fault: Fault | undefined): number {
    return sample.filter((schedule) => isViolated(fault, schedule)).length;
  }

  it.each(['draws for any', 'confirms anywhere', 'never draws again', 'adopts nothing'] as const)(
    'a protocol that %s fails now and then',
    (fault) => {
      expect(violations(fault)).toBeGreaterThan(0);
    },
  );

  it('the agreement of the library never fails on the same schedules, although it gives out many tokens', () => {
    expect(violations(undefined)).toBe(0);
    const given = sample.flatMap((schedule) => tokensOf(undefined, schedule)).filter((token) => token !== undefined);
    expect(given.length).toBeGreaterThan(sample.length / 10);
  });
});
