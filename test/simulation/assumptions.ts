import { quorumOf } from '../../lib/core/acquire/quorum-call.js';
import { driftOf, type Settings } from '../../lib/core/settings/settings.js';
import { isLockKey } from './lock-keys.js';
import type { Endpoint } from './network/endpoint.js';
import type { SimNode } from './node.js';
import { endOfFault, type Fault, type FaultKind, type Schedule } from './schedule.js';

/** A gap that a clock guard always notices, in milliseconds: larger than the delay of any message during a fault. */
const VISIBLE_JUMP = 2_000;
/**
 * Error of a clock guard without faults, besides the delay of its samples, in milliseconds: clock rates, and the age of
 * a sample.
 */
const UNCERTAINTY = 15;
/** Largest difference of rates that a disciplined clock may have. A larger one looks like a jump sooner or later. */
const QUARTZ = 500e-6;
/**
 * A holder that is silent for less than this contacts some master in time, in milliseconds. It contacts them every
 * second, and new masters that vote early wait 2.5 s for it.
 */
const HEARD_WITHIN = 500;
/** How long a delayed packet takes after the link is free, in milliseconds. */
const RETRANSMITTED_WITHIN = 200;
/** How long processes take to reconnect to a restarted server, in milliseconds. */
const BACK_WITHIN = 2_000;
/** A server that was a replica for less than this is not noticed over a connection that survived, in milliseconds. */
const COMPARED_WITHIN = 1_000;

const CUT_OFF = 'a holder was cut off from all masters when a majority lost its data';
const FORTH_AND_BACK = `a master's clock was set forth and back before every process had looked`;

/** Faults that affect one process only. */
export const ON_CLIENTS: readonly FaultKind[] = [
  ...(['pause', 'suspend', 'clientLag', 'slew', 'stumble', 'wallJump', 'die', 'leave'] as const),
];
/** Faults that affect masters, but cost no process a lock. */
const HARMLESS: readonly FaultKind[] = ['scriptFlush', 'attachReplica', 'storm'];
/** Time within which a process meets a master again after an interruption, in milliseconds: a retry, and a late packet. */
const MET_AGAIN_WITHIN = 2_000;
/** Faults after which the data of a master may differ from what it acknowledged, or appears to differ. */
const LOSSES: readonly FaultKind[] = [
  ...([
    'promote',
    'spare',
    'failback',
    'lateBoot',
    'flush',
    'twin',
    'detour',
    'readonly',
    'serverJump',
    'smallStep',
  ] as const),
];
/** Faults that make the samples of a clock guard imprecise. */
const DELAYS: readonly FaultKind[] = [
  ...(['slow', 'late', 'partition', 'hang', 'pause', 'suspend', 'clientLag', 'slew', 'wallJump', 'crash'] as const),
  'stumble',
];

/**
 * Records which assumptions of the protocol a run has broken so far, in words. While none is broken, the run demands
 * mutual exclusion.
 *
 * An assumption about the clocks of one client concerns that client alone: the client is sick, and the run demands
 * mutual exclusion of all others. The assumptions derive from the world only. Whether a process has noticed a fault is
 * read from the library itself.
 */
export class Assumptions {
  readonly broken = new Set<string>();
  /** Whether the rates of all clocks are so close that no guard mistakes a rate for a clock that was set. */
  readonly ratesAreNormal: boolean;
  /**
   * Whether no fault that could cost a lock happens to any master or on the link to it, whatever happens to clients.
   */
  readonly mastersAreFine: boolean;
  /** The same, but links may be interrupted. */
  readonly serversAreFine: boolean;
  private readonly sick = new Map<number, string>();
  private readonly disturbed: ReadonlySet<number>;
  private readonly suspended = new Set<number>();
  private readonly setBack = new Set<number>();
  private readonly setForward = new Set<number>();
  private readonly forward = new Map<number, number>();
  private readonly back = new Set<number>();
  private readonly smallestVisible: number;
  private readonly harmless: number;
  /** When a holder has to contact the masters, because a majority loses its data. */
  private loss: Interval | undefined;

  constructor(
    private readonly schedule: Schedule,
    private readonly settings: Settings,
    /** Largest ttl of all processes. */
    maxTtl: number,
  ) {
    const { servers, processes, faults, operations, latency } = schedule;
    const rates = [...servers, ...processes].map(({ rate }) => rate);
    const apart = Math.max(...rates) - Math.min(...rates);
    this.ratesAreNormal = apart <= QUARTZ;
    if (apart > settings.driftFactor) this.broken.add('clocks run at rates that differ by more than driftFactor');
    const restartsAreHarmless = schedule.durable === true && areApart(faults);
    const isHarmless = ({ kind }: Fault): boolean =>
      ON_CLIENTS.includes(kind) || HARMLESS.includes(kind) || (kind === 'durableRestart' && restartsAreHarmless);
    this.mastersAreFine = faults.every(isHarmless);
    this.serversAreFine = faults.every((fault) => isHarmless(fault) || isInterruption(fault));
    this.disturbed = new Set([
      ...faults.flatMap((fault) => ('process' in fault ? [fault.process] : [])),
      ...operations.flatMap(({ process, blocks }) => (blocks ? [process] : [])),
    ]);
    const ttls = operations.flatMap(({ ttl, newTtl = ttl }) => [ttl, newTtl]);
    const smallest = Math.min(settings.ttl, ...ttls);
    const drift = driftOf(settings, smallest);
    const isClear = !faults.some(({ kind }) => DELAYS.includes(kind));
    this.smallestVisible = isClear ? drift + 4 * latency + UNCERTAINTY : VISIBLE_JUMP;
    this.harmless = drift - 2 - smallest * apart;
    if (settings.restartGuard) this.noteIsolation(maxTtl);
  }

  /** Whether the clocks of a process are so wrong that it misjudges its own locks. */
  isSick({ index }: SimNode): boolean {
    return this.sick.has(index);
  }

  /** Whether a fault may make the process sick. */
  mayBeSick({ index }: SimNode): boolean {
    return this.disturbed.has(index);
  }

  /** When the links of a process to a quorum of masters were fine for good, and it has met these masters, in true time. */
  quorumIsMetAt({ index }: SimNode): number {
    const { faults, servers } = this.schedule;
    const ends = servers.map((_, server) =>
      faults
        .filter((fault) => isInterruption(fault) && fault.process === index && fault.server === server)
        .reduce((latest, fault) => Math.max(latest, endOfFault(fault) + MET_AGAIN_WITHIN), -Infinity),
    );
    return ends.sort((one, other) => one - other)[quorumOf(servers.length) - 1] ?? Infinity;
  }

  /** The reasons why processes are sick, in words. */
  get ailments(): readonly string[] {
    return [...new Set(this.sick.values())];
  }

  /** Whether no fault touches this process or any master: whatever others do, it keeps its locks and gets new ones. */
  isHealthy({ index }: SimNode): boolean {
    return this.mastersAreFine && this.ratesAreNormal && !this.disturbed.has(index);
  }

  /** Whether the part of each ttl that is given up for drift covers a clock that is set forward by this much. */
  isHarmless(by: number): boolean {
    return by <= this.harmless;
  }

  /** To be called before the fault happens. */
  note(fault: Fault, endpoint: Endpoint | undefined, nodes: readonly SimNode[]): void {
    const guarded = this.settings.restartGuard;
    switch (fault.kind) {
      case 'crash':
        if (fault.data === 'kept') return;
        if (!guarded) this.broken.add('a master lost data, and there is no restart guard');
        if (fault.isFileOff && this.schedule.durable) {
          this.broken.add('the append-only file of a master that is said to be durable was off');
        } else if (fault.data === 'stale') this.noteStale();
        return;
      case 'lateBoot':
      case 'loseAll':
        if (!guarded) this.broken.add('a master lost data, and there is no restart guard');
        return;
      case 'promote':
        if (!guarded) this.broken.add('a replica was promoted, and there is no restart guard');
        this.noteReplaced(fault.connections, endpoint, nodes);
        // It says that it was promoted, unless it is replaced in turn: what its operator declares does not count then.
        if (!this.isOnlyLoss) this.noteStale();
        return;
      case 'spare':
        if (!guarded) this.broken.add('a master was replaced, and there is no restart guard');
        this.noteReplaced(fault.connections, endpoint, nodes);
        if (fault.data === 'stale') this.noteStale();
        return;
      case 'failback':
        if (!guarded) this.broken.add('a replica was promoted, and there is no restart guard');
        else if (fault.connections === 'kept' && fault.lasts <= COMPARED_WITHIN) {
          this.broken.add('a master was a replica for less than a second, over connections that survived');
        }
        this.noteReplaced(fault.connections, endpoint, nodes);
        this.noteStale();
        return;
      case 'clone':
      case 'rollback':
        this.broken.add('the memory of a master was set back to a snapshot');
        return;
      case 'twin':
        if (!guarded) this.broken.add('an address led to another master, and there is no restart guard');
        return;
      case 'detour':
        this.broken.add('an address led to a server of another installation');
        return;
      case 'flush':
        if (!guarded) this.broken.add('FLUSHALL, and there is no restart guard');
        return;
      case 'evict':
        this.broken.add('a master dropped a key that was held');
        return;
      case 'serverJump':
      case 'smallStep':
        this.noteServerJump(fault.by, endpoint, nodes);
        return;
      case 'clientLag':
        this.sick.set(fault.process, 'the clocks of a client stood still');
        return;
      case 'slew':
        if (fault.by > this.settings.driftFactor) this.sick.set(fault.process, 'the clocks of a client were slewed');
        return;
      case 'stumble':
        this.sick.set(fault.process, 'the monotonic clock of a client jumped');
        return;
      case 'attachReplica':
        if (endpoint?.server?.hasForgotten) {
          this.broken.add('a master was a replica, its backlog ended, and it got a replica of its own');
        }
        return;
      case 'suspend':
        this.suspended.add(fault.process);
        this.noteClocks(fault.process);
        return;
      case 'wallJump':
        (fault.by > 0 ? this.setForward : this.setBack).add(fault.process);
        this.noteClocks(fault.process);
        return;
      // These faults cost an answer, and no guarantee depends on an answer.
      case 'durableRestart':
      case 'scriptFlush':
      case 'oom':
      case 'readonly':
      case 'hang':
      case 'partition':
      case 'cut':
      case 'slow':
      case 'late':
      case 'halfOpen':
      case 'storm':
      case 'pause':
      case 'die':
      case 'leave':
    }
  }

  /** Whether one fault affects the masters, and it affects one of them. */
  private get isOnlyLoss(): boolean {
    const { faults, servers } = this.schedule;
    return servers.length > 1 && faults.filter(({ kind }) => !ON_CLIENTS.includes(kind)).length === 1;
  }

  private noteStale(): void {
    if (this.schedule.durable) this.broken.add('a master that is said to be durable lost data');
  }

  /** Notes a fault in which a message sent to one server reaches its replacement. */
  private noteReplaced(
    connections: 'kept' | 'broken',
    endpoint: Endpoint | undefined,
    nodes: readonly SimNode[],
  ): void {
    if (!this.settings.restartGuard || connections === 'broken' || !endpoint) return;
    if (!nodes.some((node) => node.isRecognizing(endpoint))) return;
    this.broken.add('a server was replaced while it was recognized, over a connection that survived');
  }

  /**
   * A server votes at the address of another master, and the master that comes back there does not know of
   * the locks that it granted.
   */
  noteServedElsewhere(): void {
    this.broken.add('a server was replaced, and went on at the address of another master for a while');
  }

  private noteServerJump(by: number, endpoint: Endpoint | undefined, nodes: readonly SimNode[]): void {
    if (!endpoint) return;
    if (by <= 0) {
      this.back.add(endpoint.index);
      if (this.forward.has(endpoint.index)) this.broken.add(FORTH_AND_BACK);
      this.noteWitnesses();
      return;
    }
    const sum = (this.forward.get(endpoint.index) ?? 0) + by;
    this.forward.set(endpoint.index, sum);
    for (const process of this.setForward) this.noteClocks(process);
    this.noteWitnesses();
    // So small a step is covered by the part of each ttl that is given up for drift.
    if (sum <= this.harmless && this.forward.size === 1) return;
    if (!this.settings.restartGuard) this.broken.add(`a master's clock was set forward, and there is no clock guard`);
    else if (by < this.smallestVisible) {
      this.broken.add(`a master's clock was set forward by less than a delay can explain`);
    } else if (this.back.has(endpoint.index)) {
      this.broken.add(FORTH_AND_BACK);
    } else if (this.hasStalls) {
      this.broken.add(`a master's clock was set forward while answers took long`);
    } else if (this.forward.size >= quorumOf(this.schedule.servers.length) && !this.isAloneAndEmpty(endpoint)) {
      this.broken.add('the clocks of a majority of masters were set forward');
    } else if (!this.isKnownToAll(endpoint, nodes)) {
      this.broken.add(`a master's clock was set forward before every process knew the master`);
    }
  }

  /** A step is judged by the clocks of the other masters: those that were set as well prove nothing. */
  private noteWitnesses(): void {
    const { servers } = this.schedule;
    const steps = new Set([...this.forward.keys(), ...this.back]);
    if (servers.length < 2 || this.forward.size === 0 || steps.size < quorumOf(servers.length)) return;
    this.broken.add('the clocks of a majority of masters were set');
  }

  /** Whether an answer may take long. A process that is cut off and asks for nothing afterwards counts no answer. */
  private get hasStalls(): boolean {
    const { faults, operations } = this.schedule;
    return faults.some((fault) => {
      if (!('lasts' in fault) || fault.lasts <= 1_000) return false;
      // Servers answer at once meanwhile.
      if (fault.kind === 'storm' || fault.kind === 'twin') return false;
      if (fault.kind !== 'partition') return true;
      const own = operations.filter(({ process }) => process === fault.process);
      return own.some(({ at, wait, extend, newTtl }) => extend || newTtl !== undefined || at + wait >= fault.at);
    });
  }

  private noteClocks(process: number): void {
    if (this.suspended.has(process) && this.setBack.has(process)) {
      this.sick.set(process, 'a machine was suspended, and its wall clock set back');
    }
    if (this.forward.size > 0 && this.setForward.has(process)) {
      this.broken.add(`the wall clocks of a master and of a client were set forward`);
    }
  }

  /** A single master without a key of a lock: no key expires early, and processes that watch its quarantine wait on. */
  private isAloneAndEmpty({ server }: Endpoint): boolean {
    if (this.schedule.servers.length > 1 || !server) return false;
    return server.data.keys().every((key) => !isLockKey(key));
  }

  /** A process that meets a master for the first time cannot know its earlier state. */
  private isKnownToAll(endpoint: Endpoint, nodes: readonly SimNode[]): boolean {
    const run = (endpoint.own ?? endpoint).server?.run;
    return run !== undefined && nodes.every((node) => !node.isThere || node.knows(endpoint, run));
  }

  /**
   * New masters vote early unless a holder contacts them. A holder that cannot reach any master while a majority has
   * lost its data cannot object.
   */
  private noteIsolation(maxTtl: number): void {
    const { servers, processes, faults, operations } = this.schedule;
    const losses = faults.flatMap((fault) => lossesOf(fault, servers.length));
    const quorum = quorumOf(servers.length);
    const window = maxTtl * (1 + 2 * this.settings.driftFactor) + VISIBLE_JUMP;
    const majorities = losses.filter(({ at }) => {
      const lost = losses.filter((other) => other.at >= at && other.at <= at + window);
      return new Set(lost.map(({ server }) => server)).size >= quorum;
    });
    if (majorities.length === 0) return;
    const from = Math.min(...majorities.map(({ at }) => at));
    const to = Math.max(...losses.map(({ until }) => until)) + window;
    this.loss = [from, to];
    const isCutOff = processes.some((_, process) => {
      // A process that has asked for no lock before the end of its silence holds none.
      const holdsFrom = Math.min(...operations.filter((one) => one.process === process).map(({ at }) => at));
      return silencesOf(process, this.schedule).some(
        ([begin, end]) => begin < to && end > Math.max(from, holdsFrom) && end - begin > HEARD_WITHIN,
      );
    });
    if (isCutOff) this.broken.add(CUT_OFF);
  }

  /** A process that blocks its event loop contacts nothing meanwhile. */
  noteBlocked(at: number, lasts: number): void {
    const { loss } = this;
    if (loss && at < loss[1] && at + lasts > loss[0] && lasts > HEARD_WITHIN) this.broken.add(CUT_OFF);
  }
}

/**
 * Whether at most one durable master is away at any time, counting the time until all processes have reconnected to it.
 */
function areApart(faults: readonly Fault[]): boolean {
  const restarts = faults.filter(({ kind }) => kind === 'durableRestart').sort((a, b) => a.at - b.at);
  return restarts.every(
    (fault, index) => index === 0 || fault.at > endOfFault(restarts[index - 1] as Fault) + BACK_WITHIN,
  );
}

interface Loss {
  readonly server: number;
  readonly at: number;
  /** When the server is back. */
  readonly until: number;
}

function lossesOf(fault: Fault, servers: number): readonly Loss[] {
  const until = endOfFault(fault);
  if (fault.kind === 'loseAll')
    return Array.from({ length: servers }, (_, server) => ({ server, at: fault.at, until }));
  const isLoss = LOSSES.includes(fault.kind) || (fault.kind === 'crash' && fault.data !== 'kept');
  return isLoss && 'server' in fault ? [{ server: fault.server, at: fault.at, until }] : [];
}

type Interval = readonly [from: number, to: number];

/** When a process cannot contact any master: while it is stopped, or cut off from all of them. */
function silencesOf(process: number, { faults, servers }: Schedule): readonly Interval[] {
  const own = faults.filter((fault) => 'process' in fault && fault.process === process);
  const stops = own.filter(({ kind }) => kind === 'pause' || kind === 'suspend' || kind === 'clientLag').map(spanOf);
  const cuts = servers.map((_, server) =>
    merge([
      ...own.filter((fault) => fault.kind === 'partition' && fault.server === server).map(spanOf),
      // A process that waits for a hung server, or receives its answer late, does not ask the next one at once.
      ...faults.filter((fault) => fault.kind === 'hang' && fault.server === server).map(spanOf),
    ]),
  );
  const cutOff = cuts.reduce<readonly Interval[]>(
    (common, spans) => common.flatMap((one) => spans.flatMap((other) => overlapOf(one, other))),
    [[0, Infinity]],
  );
  return merge([...stops, ...cutOff]);
}

function isInterruption(fault: Fault): fault is Extract<Fault, { kind: 'partition' | 'cut' }> {
  return fault.kind === 'partition' || fault.kind === 'cut';
}

function spanOf(fault: Fault): Interval {
  return [fault.at, endOfFault(fault) + RETRANSMITTED_WITHIN];
}

function overlapOf(one: Interval, other: Interval): readonly Interval[] {
  const from = Math.max(one[0], other[0]);
  const to = Math.min(one[1], other[1]);
  return from < to ? [[from, to]] : [];
}

/** Merges intervals that touch. */
function merge(intervals: readonly Interval[]): readonly Interval[] {
  const merged: Interval[] = [];
  for (const interval of [...intervals].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && interval[0] <= last[1] + RETRANSMITTED_WITHIN) {
      merged[merged.length - 1] = [last[0], Math.max(last[1], interval[1])];
    } else merged.push(interval);
  }
  return merged;
}
