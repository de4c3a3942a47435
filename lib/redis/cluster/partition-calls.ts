import type { Clock, Timer } from '../../core/clock.js';
import type { PendingRequest } from '../request-queue.js';
import { RELEASE_ALONE } from '../scripts/lua.generated.js';
import type { ClusterNode } from './cluster-node.js';
import type { Topology } from './topology.js';
import type { MasterReply, Quarantine } from '../../core/master.interface.js';
import { encodeGroups, isCompared, isVote, RequestEncoder, type RequestGroup } from '../request-encoding.js';
import { isStateRequest, OTHER_DATA, runStateRequest, type StateRequest } from '../redis-state.js';
import { isReply, LOST_DATA } from '../replies.js';
import { ScriptCall, type Verdict } from '../script-call.js';
import type { ClusterNames } from './cluster-names.js';
import type { PartitionGuard, PartitionRecord } from './partition-guard.js';
import { keysOf, type PartitionedRequest } from './split-request.js';

// What several queues want to do after one turn of the event loop takes one write if they do it together.
export class Turn implements Pick<Clock, 'afterTurn' | 'schedule'> {
  private callbacks: (() => void)[] = [];

  constructor(private readonly clock: Clock) {}

  afterTurn(callback: () => void): void {
    if (this.callbacks.push(callback) === 1) this.clock.afterTurn(this.run);
  }

  schedule(delay: number, callback: () => void): Timer {
    return this.clock.schedule(delay, callback);
  }

  private readonly run = (): void => {
    const { callbacks } = this;
    this.callbacks = [];
    for (const callback of callbacks) callback();
  };
}

// The keys of a slot that is being moved are on two nodes: one key can be released where it is, but not together with
// its queue.
// Protocol 12.4
function releaseOneByOne(
  topology: Topology,
  { node, asked }: { readonly node: ClusterNode; readonly asked: readonly PendingRequest[] },
): void {
  for (const { request } of asked) {
    if (request.op !== 'release') continue;
    const { keys, token, keepFor } = request;
    for (const key of keys) {
      const parameters = [RELEASE_ALONE, 1, key, token, Math.ceil(keepFor)];
      node.call('eval', parameters).catch((error: unknown) => follow(topology, String(error), parameters));
    }
  }
}

// Carries out a release at the node to which the key was moved. Nothing else follows a key.
function follow(topology: Topology, message: string, release: (string | number)[]): void {
  const [, address = ''] = /\bASK \d+ (\S+)/.exec(message) ?? [];
  const target = topology.nodeAnnouncedAs(address);
  if (!target?.isConnected) return;
  target.call('asking', []).catch(() => undefined);
  target.call('eval', release).catch(() => undefined);
}

const UNCONFIRMED: Quarantine = Object.freeze({
  reason: 'most primaries do not confirm which node serves it',
  remaining: 1,
});
const CHANGED: Quarantine = Object.freeze({ reason: 'its owner or its data has changed meanwhile', remaining: 1 });
const MOVED_AWAY: MasterReply = Object.freeze({
  kind: 'refused',
  code: 'MOVED',
  reason: 'its partition is being moved to another node',
});
export const SILENT = 'it leaves requests unanswered';
// The error of a command in a script whose key is not in a slot of the node.
const NOT_LOCAL = /non[ -]local key/;

interface PartitionCallsContext {
  readonly clock: Clock;
  readonly names: ClusterNames;
  readonly topology: Topology;
  readonly guard: PartitionGuard | undefined;
  readonly readsSeals: boolean;
  readonly needsView: boolean;
  readonly masterTimeout: number;
}

// The requests of one turn to one partition, which its owner answers.
class PartitionCall extends ScriptCall<PartitionRecord> {
  constructor(
    private readonly context: PartitionCallsContext,
    private readonly calls: PartitionCalls,
    readonly node: ClusterNode,
    readonly partition: number,
    asked: readonly PendingRequest[],
    repetitions: number,
  ) {
    super(node, asked, context.clock.read(), context.guard?.records[partition], repetitions);
  }

  run(encoder: RequestEncoder): void {
    const { node, group, repetitions } = this;
    const { known, requests } = group;
    const [marker, , , counters] = known;
    const keys = keysOf(requests, [marker, counters]);
    const parts = encoder.encode(requests, node.isListening);
    const [command, script] = repetitions > 0 ? ['eval', node.script.text] : ['evalsha', node.script.sha1];
    node.request(
      command,
      [script, keys.length, ...keys, ...known, ...parts],
      (values) => this.receive(values),
      (error) => this.fail(error),
    );
  }

  get group(): RequestGroup {
    const { partition, asked, data, history } = this;
    const { names } = this.context;
    const requests = asked.map(({ request }) => request);
    const needsSeal = data !== undefined && requests.some(isCompared);
    const marker = needsSeal ? names.sealOf(partition) : '';
    // A nonce that no seal has: what needs known data is refused.
    const nonce = data?.seal?.nonce ?? '-';
    const counters = requests.some(({ op }) => op === 'draw') ? names.countersOf(partition) : '';
    return { known: [marker, nonce, needsSeal ? history : '', counters], requests };
  }

  fail(error: unknown): void {
    const { node, asked, repetitions } = this;
    const { topology } = this.context;
    const answer = this.failure(error);
    const code = answer.kind === 'refused' ? answer.code : '';
    if (code === 'ASK' || code === 'TRYAGAIN') releaseOneByOne(topology, { node, asked });
    if (repetitions === 0 && (code === 'MOVED' || code === 'NOSCRIPT')) {
      this.repeat(asked, answer);
      return;
    }
    if (['MOVED', 'CLUSTERDOWN', 'READONLY', 'LOADING', 'ASK', 'TRYAGAIN'].includes(code)) topology.refreshSoon();
    for (const one of asked) one.reply(answer);
  }

  runState(request: StateRequest, one: PendingRequest): void {
    const { node, partition, data } = this;
    const { names, guard, readsSeals, topology } = this.context;
    const marker = readsSeals ? names.sealOf(partition) : '';
    const { run = '', replid = '' } = node.identity ?? {};
    let meant = request;
    if (data && request.op !== 'read-state') {
      // The number of changes in the whole cluster that the holder knew.
      if (!data.seal || data.changedAt > Number(request.generation)) {
        one.reply(OTHER_DATA);
        return;
      }
      meant = { ...request, generation: data.seal.generation };
    }
    const evaluate = (script: string, args: readonly (string | number)[]): Promise<unknown> => {
      const keys = keysOf([request], [marker]);
      return node.call('eval', [script, keys.length, ...keys, ...args]);
    };
    runStateRequest(meant, { marker, run, replid }, evaluate).then(
      (answer) => {
        if (answer === OTHER_DATA) {
          guard?.forget(node);
          data?.doubt(LOST_DATA.reason);
          topology.refreshSoon();
        }
        const isCounted = answer.kind !== 'granted' || request.op === 'read-state';
        const counted = isCounted ? answer : this.onceConfirmed(one, answer);
        if (counted) one.reply(counted);
      },
      (error: unknown) => {
        topology.refreshSoon();
        one.reply(this.failure(error));
      },
    );
  }

  protected quarantineAfter(): Quarantine | undefined {
    return this.data?.quarantineAt(this.context.clock.read()) ?? (this.isCurrent ? undefined : CHANGED);
  }

  // Of the keys that were not declared, one is not here, or not here any more.
  protected doubtAbout(_: PendingRequest, value: unknown): MasterReply | undefined {
    return isReply(value) && NOT_LOCAL.test(value.message) ? MOVED_AWAY : undefined;
  }

  protected confirmed(one: PendingRequest, grant: MasterReply): MasterReply | undefined {
    return isVote(one.request) ? this.onceConfirmed(one, grant) : grant;
  }

  // Protocol 12.4
  protected examine(why: MasterReply, goOn: (verdict: Verdict) => void): void {
    const { data, node, sent, repetitions } = this;
    const { topology, guard, clock, masterTimeout } = this.context;
    const isOtherData = why.kind === 'refused' && why.code !== 'MOVED';
    if (isOtherData) data?.doubt(LOST_DATA.reason);
    if (isOtherData) guard?.forget(node);
    const recognized = isOtherData ? node.recognize().catch(() => false) : Promise.resolve(true);
    const judge = (): void => {
      const now = clock.read();
      const quarantine = data?.quarantineAt(now);
      const isLate = now.monotonic - sent.monotonic > masterTimeout;
      goOn((request) => {
        if (quarantine && isVote(request)) return this.withheld(quarantine);
        return repetitions > 0 || (isLate && request.op !== 'release') ? why : undefined;
      });
    };
    recognized.then(() => topology.refresh()).then(judge, judge);
  }

  protected sendAgain(asked: readonly PendingRequest[]): void {
    this.calls.send(this.partition, asked, this.repetitions + 1);
  }

  // A vote counts if the primaries confirm that the process is still the owner. Unless that is known, the answer comes
  // later.
  // Protocol 12.7
  private onceConfirmed(one: PendingRequest, grant: MasterReply): MasterReply | undefined {
    const { needsView, topology } = this.context;
    if (!this.data || !needsView) return grant;
    let now: MasterReply | undefined;
    let isLate = false;
    topology.views.confirm(this.partition, this.sent, (isConfirmed) => {
      const counted = isConfirmed && this.isCurrent ? grant : this.withheld(isConfirmed ? CHANGED : UNCONFIRMED);
      if (!isConfirmed) topology.refreshSoon();
      if (isLate) one.reply(counted);
      else now = counted;
    });
    isLate = true;
    return now;
  }
}

// One command per partition goes to its owner, with all its keys declared.
// Protocol 12.3
export class PartitionCalls {
  private readonly encoder = new RequestEncoder();

  constructor(private readonly context: PartitionCallsContext) {}

  send(partition: number, asked: readonly PendingRequest[], repetitions = 0): void {
    const call = this.callFor(partition, asked, repetitions);
    const [first] = call?.asked ?? [];
    if (first && isStateRequest(first.request)) call?.runState(first.request, first);
    else call?.run(this.encoder);
  }

  sendTogether(asked: readonly PartitionedRequest[]): void {
    const byPartition = new Map<number, PartitionedRequest[]>();
    for (const one of asked) {
      const known = byPartition.get(one.partition);
      if (known) known.push(one);
      else byPartition.set(one.partition, [one]);
    }
    const [[only] = []] = byPartition;
    if (only !== undefined && byPartition.size === 1) {
      this.send(only, asked);
      return;
    }
    const calls = [...byPartition].flatMap(([partition, requests]) => this.callFor(partition, requests, 0) ?? []);
    const [first] = calls;
    for (const call of calls) if (call.node !== first?.node) call.run(this.encoder);
    if (first)
      this.runTogether(
        first.node,
        calls.filter(({ node }) => node === first.node),
      );
  }

  // Without an owner that can be asked, answers the requests and returns `undefined`.
  private callFor(partition: number, asked: readonly PendingRequest[], repetitions: number): PartitionCall | undefined {
    const { topology, guard, clock, needsView } = this.context;
    const node = topology.ownerOf(partition);
    const problem: MasterReply | undefined = node ? node.problem() : noOwnerOf(partition);
    if (!node || problem) {
      topology.refreshSoon();
      for (const { reply } of asked) if (problem) reply(problem);
      return undefined;
    }
    if (node.isSilent) {
      topology.refreshSoon();
      asked = releasesOf(asked, node);
      if (asked.length === 0) return undefined;
    }
    if (guard && needsView && asked.some(({ request }) => isVote(request))) topology.views.refresh(clock.read());
    return new PartitionCall(this.context, this, node, partition, asked, repetitions);
  }

  // Declares one key only: the server checks for each command that its keys are its own.
  private runTogether(node: ClusterNode, calls: readonly PartitionCall[]): void {
    const [key = ''] = calls[0]?.asked[0]?.request.keys ?? [];
    const groups = encodeGroups(
      calls.map(({ group }) => group),
      node.isListening,
    );
    node.request(
      'evalsha',
      [node.script.sha1, 1, key, '', '', '', '', groups],
      (values) => {
        let from = 0;
        for (const call of calls) {
          const to = from + call.asked.length;
          call.receive(Array.isArray(values) ? values.slice(from, to) : values);
          from = to;
        }
      },
      (error) => {
        for (const call of calls) call.fail(error);
      },
    );
  }
}

// What undoes earlier requests follows them, also to a node that hangs. The rest is answered.
// Protocol 12.4
function releasesOf(asked: readonly PendingRequest[], node: ClusterNode): readonly PendingRequest[] {
  const silent: MasterReply = { kind: 'unreachable', reason: `${node.name}: ${SILENT}`, sent: false };
  for (const { request, reply } of asked) if (request.op !== 'release') reply(silent);
  return asked.filter(({ request }) => request.op === 'release');
}

export function noOwnerOf(partition: number): MasterReply {
  return { kind: 'unreachable', reason: `no primary is known for slot ${partition * 64}`, sent: false };
}
