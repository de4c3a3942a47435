import { Keyspace, NUL } from '../../lib/settings/keyspace.js';
import type { LockLostError } from '../../lib/redlock/errors.js';
import { resolveSettings, type Settings } from '../../lib/settings/settings.js';
import { Actor } from './actor.js';
import { Assumptions } from './assumptions.js';
import { Chance } from './engine/chance.js';
import { MachineClock } from './engine/machine-clock.js';
import { SimProcess } from './engine/process.js';
import { Scheduler } from './engine/scheduler.js';
import { FaultInjector } from './fault-injector.js';
import { Endpoint } from './network/endpoint.js';
import { type NodeListener, SimNode } from './node.js';
import { Beliefs } from './properties/beliefs.js';
import { Health } from './properties/health.js';
import { checkSharedKeys } from './properties/leftovers.js';
import { Sometimes } from './properties/sometimes.js';
import { States } from './properties/states.js';
import { Tokens } from './properties/tokens.js';
import { Votes } from './properties/votes.js';
import { Violation } from './properties/violation.js';
import { areRivals, areShared, type FaultKind, type Operation, type Schedule } from './schedule.js';
import type { ModelFault } from './server/operations.js';
import { type Addition, type DataWatch, runId, type ServerPlan, SimServer } from './server/sim-server.js';

export class World {
  readonly scheduler = new Scheduler();
  readonly endpoints: readonly Endpoint[];
  readonly nodes: readonly SimNode[];
  readonly actors: Actor[] = [];
  readonly inflicted: FaultKind[] = [];
  readonly assumptions: Assumptions;
  readonly beliefs: Beliefs;
  readonly tokens: Tokens;
  readonly states: States;
  readonly health: Health;
  readonly sometimes = new Sometimes();
  /** Settings of all processes, unless a process overrides them. */
  readonly settings: Settings;
  readonly votes: Votes;
  failure: Error | undefined;
  private readonly isShared: boolean;
  private readonly grants: Actor[] = [];
  private lastInvitation = '';
  private readonly picks = new Map<string, string>();

  constructor(
    readonly schedule: Schedule,
    readonly modelFaults: ReadonlySet<ModelFault>,
    /** Receives the trace; `undefined` if there is none. */
    private readonly log: ((line: string) => void) | undefined,
  ) {
    const { scheduler } = this;
    this.isShared = schedule.operations.some(({ mode }) => mode !== undefined);
    const { seed, servers, processes, latency, options } = schedule;
    this.settings = resolveSettings(options, servers.length);
    this.endpoints = servers.map(({ rate, offset, uptime, isKnown = false }, index) => {
      const clock = new MachineClock(scheduler, rate, offset);
      const server = new SimServer(runId(index, 0), { uptime, ...this.serverPlan(clock) });
      if (isKnown) server.mark(new Keyspace(this.settings.keyPrefix).marker);
      return new Endpoint(`master${index}`, index, clock, scheduler, new Chance(seed, 100 + index), server);
    });
    const hears = this.listener();
    this.nodes = processes.map(({ rate, offset, maxTtl, order = servers.map((_, number) => number) }, index) => {
      const clock = new MachineClock(scheduler, rate, offset);
      const process = new SimProcess(`process${index}`, scheduler, clock, new Chance(seed, 200 + index));
      const settings = maxTtl === undefined ? this.settings : resolveSettings({ ...options, maxTtl }, servers.length);
      return new SimNode({
        process,
        ...{ index, settings, scheduler, order, latency, hears },
        ...{ endpoints: this.endpoints, chance: new Chance(seed, 300 + index) },
      });
    });
    const maxTtls = this.nodes.map(({ settings }) => settings.maxTtl);
    this.assumptions = new Assumptions(schedule, this.settings);
    this.votes = new Votes(this, Math.min(...maxTtls), Math.max(...maxTtls));
    this.beliefs = new Beliefs(this);
    this.tokens = new Tokens(scheduler, Math.min(...maxTtls));
    this.states = new States(this);
    this.health = new Health(this);
    if (Math.max(...maxTtls) > this.settings.maxTtl)
      this.sometimes.reached('a process with a larger maxTtl came or went');
    this.plan();
  }

  serverPlan(clock: MachineClock): ServerPlan {
    const { modelFaults: faults } = this;
    return { clock, faults, watch: this.dataWatch };
  }

  trace(who: string, what: () => string): void {
    this.log?.(`${this.scheduler.now.toFixed(3).padStart(12)}  ${who.padEnd(20)} ${what()}`);
  }

  /** Whether nothing goes wrong, and no caller blocks its event loop. */
  get isQuiet(): boolean {
    const { faults, operations } = this.schedule;
    return faults.length === 0 && operations.every(({ blocks }) => blocks === undefined);
  }

  get isTraced(): boolean {
    return this.log !== undefined;
  }

  report(error: unknown): void {
    this.failure ??= error instanceof Error ? error : new Error(String(error));
  }

  /** Runs an action of the application after a delay, if its process runs. */
  later(node: SimNode, delay: number, action: () => void): void {
    this.scheduler.after(delay, () =>
      node.process.receive(() => {
        this.scheduler.mark(node.process.pendingTimers);
        action();
      }),
    );
  }

  granted(actor: Actor): void {
    this.health.noteGrant(actor);
    this.grants.push(actor);
  }

  add(name: string, operation: Operation, outer?: Actor): Actor {
    const actor = new Actor(name, this.nodes[operation.process] as SimNode, operation, this, outer);
    this.actors.push(actor);
    this.scheduler.at(operation.at, () => {
      actor.node.process.receive(() => {
        if (actor.node.isThere) actor.begin();
        else {
          actor.hasFailed = true;
          actor.end();
        }
      });
    });
    return actor;
  }

  /** Runs after every event, once nothing is left to do at that moment. */
  check(): void {
    if (this.failure !== undefined) throw this.failure;
    if (this.grants.length > 0) this.checkOrder();
    this.beliefs.check();
  }

  noteClocks(): void {
    for (const { clock } of this.endpoints) this.tokens.noteClock(clock.error);
  }

  private listener(): NodeListener {
    return {
      reported: (event, words) => this.sometimes.reported(event, words),
      lost: (node, error) => this.lost(node, error),
      unused: () => this.sometimes.reached('a lock ended before its work could start'),
    };
  }

  private lost(node: SimNode, { cause }: LockLostError): void {
    if (cause === 'expired') this.sometimes.reached('a lock expired');
    if (node.process.resumedAt > this.scheduler.now - 2) this.sometimes.reached('a loss was reported after a resume');
  }

  private readonly dataWatch: DataWatch = {
    expired: (value) => {
      if (value.startsWith('reserved for ')) this.sometimes.reached('a hand-off reservation expired');
    },
    set: (value, words) => {
      if (words.some((word) => String(word).includes('"pick"'))) {
        this.notePick(value);
      }
      const isWriter = words.some((word) => String(word).includes('"defer_readers"'));
      if (isWriter) this.sometimes.reached('an exclusive request had a writer key');
      // An extension by a process that believes it holds the lock sets a key only where the key is missing.
      if (!this.beliefs.hasToken(value)) return;
      if (words.some((word) => String(word).includes('extend'))) this.sometimes.reached('an extension healed a master');
    },
    added: (addition) => this.noteMember(addition),
    fieldSet: (server, field, before) => {
      if (field === 'run') this.votes.noteMarker(server, before);
    },
    gated: (server, hasPassed) => this.votes.noteGate(server, hasPassed),
    excluded: () => this.sometimes.reached('a master took no further part in a state, because it had lost data'),
    claimed: () => this.sometimes.reached('a state was claimed for a larger number'),
    published: (channel, message) => {
      const invitation = `${this.scheduler.steps} ${message}`;
      if (invitation === this.lastInvitation) this.sometimes.reached('a release woke several shared requests');
      this.lastInvitation = invitation;
      this.health.noteNotification(channel, message);
    },
    failed: (message) => {
      if (message.startsWith('NOSCRIPT')) this.sometimes.reached('a master answered NOSCRIPT');
      if (message.startsWith('OOM')) this.sometimes.reached('a master had no memory for a write');
      if (message.startsWith('READONLY')) this.sometimes.reached('a master refused writes as a replica');
    },
  };

  /** Looks at the keys of the masters, if locks are shared in this run. */
  checkSharedKeys(): void {
    if (this.isShared) checkSharedKeys(this);
  }

  private noteMember({ key, member, words, data }: Addition): void {
    const { sometimes, settings } = this;
    const [, name] = /^shared (.*)$/s.exec(member) ?? [];
    if (name === undefined) return;
    const isExtension = words.some((word) => String(word).includes('"extend"'));
    if (isExtension && this.beliefs.hasToken(name)) sometimes.reached('an extension healed a shared holder');
    const [, resource] = key.split(`${NUL}queue:`);
    const isDeferred =
      resource !== undefined && data.get(new Keyspace(settings.keyPrefix).keyOf(resource)) === undefined;
    if (isDeferred) sometimes.reached('a shared request was deferred by a writer key');
  }

  /** Tokens of one acquisition end in the same signature. */
  private notePick(token: string): void {
    this.sometimes.reached('a home master picked a permit');
    const [, acquisition = ''] = token.split('@');
    const before = this.picks.get(acquisition) ?? token;
    if (before !== token) this.sometimes.reached('another permit was picked after a refusal');
    this.picks.set(acquisition, token);
  }

  private checkOrder(): void {
    for (const actor of this.grants.splice(0)) {
      if (actor.operation.wait === 0) continue;
      this.health.sharing.noteOrder(actor);
      const overtaken = this.actors.filter((other) => {
        if (other === actor || other.node !== actor.node || !other.isWaiting || other.operation.wait === 0)
          return false;
        if (areShared(other.operation, actor.operation)) return false;
        // A nested call does not join the queue.
        if (actor.outer) {
          this.notePassing(actor, other);
          return false;
        }
        if (other.outer) return false;
        // An exclusive request behind shared holders keeps later ones out, also if one of the holders has to ask again.
        if (other.operation.mode === 'shared' && other.node.unused.has(other.operation.resources)) return false;
        return other.askedAt < actor.askedAt && areRivals(other.operation, actor.operation);
      });
      const [first] = overtaken;
      // As many as there are permits try to take one at a time.
      if (!first || overtaken.length < (actor.operation.permits ?? 1)) continue;
      const message = `${actor.name} was served before ${first.name}, which had come first`;
      throw new Violation('first come, first served', this.scheduler.now, message);
    }
  }

  private notePassing(actor: Actor, other: Actor): void {
    if (other.askedAt >= actor.askedAt || !areRivals(actor.operation, other.operation)) return;
    if (other.operation.resources.some((resource) => actor.outer?.held.includes(resource))) {
      this.sometimes.reached('a nested call passed an earlier call that waited for its chain');
    }
  }

  private plan(): void {
    const { processes, operations, faults } = this.schedule;
    processes.forEach(({ startsAt }, index) => {
      const node = this.nodes[index] as SimNode;
      this.scheduler.at(startsAt, () => node.process.receive(() => void node.redlock.masters.open()));
    });
    operations.forEach((operation, index) => this.add(`process${operation.process}/op${index}`, operation));
    const injector = new FaultInjector(this, new Chance(this.schedule.seed, 7));
    for (const fault of faults) injector.plan(fault);
    this.noteClocks();
  }
}
