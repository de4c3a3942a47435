import type { Clock, Instant, Timer } from '../../core/clock.js';
import { type PendingRequest, tokensOf } from '../request-queue.js';
import { RELEASE_ALONE } from '../scripts/lua.generated.js';
import type { ClusterNode } from './cluster-node.js';
import type { Topology } from './topology.js';
import { Refusal } from '../../core/health/refusal.js';
import type { MasterReply, MasterRequest, Quarantine } from '../../core/master.interface.js';
import { encodeGroups, isCompared, isVote, RequestEncoder, type RequestGroup } from '../request-encoding.js';
import { isStateRequest, OTHER_DATA, runStateRequest, type StateRequest } from '../redis-state.js';
import { isReply, LOST_DATA, replyFrom } from '../replies.js';
import { UNMARKED } from '../scripts/constants.js';
import type { ClusterNames } from './cluster-names.js';
import type { PartitionGuard } from './partition-guard.js';
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

// One of the primaries may be out of memory while the others grant locks.
export class PrimaryRefusals {
  private readonly refusals = new Map<string, Refusal>();

  note(owner: string, request: MasterRequest, answer: MasterReply): void {
    const refusal = this.refusals.get(owner) ?? new Refusal();
    refusal.note(request, answer);
    if (refusal.reason === undefined) this.refusals.delete(owner);
    else this.refusals.set(owner, refusal);
  }

  get isEmpty(): boolean {
    return this.refusals.size === 0;
  }

  reasonOf(owner: string): string | undefined {
    return this.refusals.get(owner)?.reason;
  }

  commonReason(owners: Iterable<string>): string | undefined {
    let first: string | undefined;
    for (const owner of owners) {
      const reason = this.reasonOf(owner);
      if (reason === undefined) return undefined;
      first ??= reason;
    }
    return first;
  }
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

interface Batch {
  readonly node: ClusterNode;
  readonly partition: number;
  readonly asked: readonly PendingRequest[];
  readonly sent: Instant;
  // That the script compares; empty if it compares none.
  readonly history: string;
  // Of the data that the requests were meant for.
  readonly epoch: number;
  // Whether a doubt about the owner or the data may be settled, and the requests sent once more.
  readonly isFirst: boolean;
}

interface PartitionCallsContext {
  readonly clock: Clock;
  readonly names: ClusterNames;
  readonly topology: Topology;
  readonly guard: PartitionGuard | undefined;
  readonly readsSeals: boolean;
  readonly needsView: boolean;
  readonly masterTimeout: number;
}

// One command per partition goes to its owner, with all its keys declared.
// Protocol 12.3
export class PartitionCalls {
  private readonly encoder = new RequestEncoder();

  constructor(private readonly context: PartitionCallsContext) {}

  send(partition: number, asked: readonly PendingRequest[], isFirst = true): void {
    const batch = this.batch(partition, asked, isFirst);
    if (!batch) return;
    const [first] = asked;
    if (first && isStateRequest(first.request)) this.sendState(batch, first.request, first);
    else this.run(batch, isFirst ? 'evalsha' : 'eval');
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
    const batches = [...byPartition].flatMap(([partition, requests]) => this.batch(partition, requests, true) ?? []);
    const [first] = batches;
    const elsewhere = batches.filter(({ node }) => node !== first?.node);
    for (const batch of elsewhere) this.run(batch, 'evalsha');
    if (first)
      this.runTogether(
        first.node,
        batches.filter(({ node }) => node === first.node),
      );
  }

  // Without an owner that can be asked, answers the requests and returns `undefined`.
  private batch(partition: number, asked: readonly PendingRequest[], isFirst: boolean): Batch | undefined {
    const { topology, guard, clock, needsView } = this.context;
    const node = topology.ownerOf(partition);
    const problem: MasterReply | undefined = node ? node.problem() : noOwnerOf(partition);
    if (!node || problem) {
      topology.refreshSoon();
      this.answerAll(asked, () => problem);
      return undefined;
    }
    if (node.isSilent) {
      topology.refreshSoon();
      asked = this.releasesOf(asked, node);
      if (asked.length === 0) return undefined;
    }
    const record = guard?.records[partition];
    const sent = clock.read();
    const history = record?.historyToCompare(sent) ?? '';
    if (guard && needsView && asked.some(({ request }) => isVote(request))) topology.views.refresh(sent);
    return { node, partition, asked, sent, history, epoch: record?.epoch ?? 0, isFirst };
  }

  // What undoes earlier requests follows them, also to a node that hangs. The rest is answered.
  // Protocol 12.4
  private releasesOf(asked: readonly PendingRequest[], node: ClusterNode): readonly PendingRequest[] {
    const silent: MasterReply = { kind: 'unreachable', reason: `${node.name}: ${SILENT}`, sent: false };
    this.answerAll(asked, ({ request }) => (request.op === 'release' ? undefined : silent));
    return asked.filter(({ request }) => request.op === 'release');
  }

  private run(batch: Batch, command: 'evalsha' | 'eval'): void {
    const { node } = batch;
    const { marker, nonce, history, counters, requests } = this.groupOf(batch);
    const keys = keysOf(requests, [marker, counters]);
    const parts = this.encoder.encode(requests, node.isListening);
    const script = command === 'eval' ? node.script.text : node.script.sha1;
    node.request(
      command,
      [script, keys.length, ...keys, marker, nonce, history, counters, ...parts],
      (values) => this.read(batch, values as readonly unknown[]),
      (error) => this.fail(batch, error),
    );
  }

  // Declares one key only: the server checks for each command that its keys are its own.
  private runTogether(node: ClusterNode, batches: readonly Batch[]): void {
    const [key = ''] = batches[0]?.asked[0]?.request.keys ?? [];
    const groups = encodeGroups(
      batches.map((batch) => this.groupOf(batch)),
      node.isListening,
    );
    node.request(
      'evalsha',
      [node.script.sha1, 1, key, '', '', '', '', groups],
      (values) => {
        let from = 0;
        for (const batch of batches) {
          const to = from + batch.asked.length;
          this.read(batch, (values as readonly unknown[]).slice(from, to));
          from = to;
        }
      },
      (error) => {
        for (const batch of batches) this.fail(batch, error);
      },
    );
  }

  private groupOf({ partition, asked, history }: Batch): RequestGroup {
    const { names, guard } = this.context;
    const requests = asked.map(({ request }) => request);
    const needsSeal = guard !== undefined && requests.some(isCompared);
    return {
      marker: needsSeal ? names.sealOf(partition) : '',
      // A nonce that no seal has: what needs known data is refused.
      nonce: guard?.records[partition]?.seal?.nonce ?? '-',
      history: needsSeal ? history : '',
      counters: requests.some(({ op }) => op === 'draw') ? names.countersOf(partition) : '',
      requests,
    };
  }

  private read(batch: Batch, values: readonly unknown[]): void {
    const { node, partition, asked, sent, history, epoch } = batch;
    const { guard } = this.context;
    const record = guard?.records[partition];
    if (history !== '' && !values.includes(UNMARKED) && asked.some(({ request }) => isCompared(request))) {
      record?.noteComparison(history, sent);
    }
    const waiting = record?.quarantineAt(this.context.clock.read());
    const quarantine = waiting ?? (epoch === (record?.epoch ?? 0) ? undefined : CHANGED);
    const unknown: PendingRequest[] = [];
    const moved: PendingRequest[] = [];
    this.answerAll(asked, (one, index) => {
      const value = values[index];
      if (value === UNMARKED) {
        unknown.push(one);
        return undefined;
      }
      // Of the keys that were not declared, one is not here, or not here any more.
      if (isReply(value) && NOT_LOCAL.test(value.message)) {
        moved.push(one);
        return undefined;
      }
      const answer = isReply(value) ? node.failure(value, tokensOf([one])) : replyFrom(value);
      if (answer.kind !== 'granted' || !isVote(one.request)) return answer;
      if (quarantine) return { kind: 'quarantined', sent: true, ...quarantine };
      return this.confirmed(batch, one, answer);
    });
    if (unknown.length > 0) this.lookAgain(batch, unknown, LOST_DATA, true);
    if (moved.length > 0) this.lookAgain(batch, moved, MOVED_AWAY, false);
  }

  // A vote counts if the primaries confirm that the process is still the owner. Unless that is known, the answer comes
  // later.
  // Protocol 12.7
  private confirmed(
    { partition, sent, epoch }: Batch,
    one: PendingRequest,
    answer: MasterReply,
  ): MasterReply | undefined {
    const { guard, needsView, topology } = this.context;
    if (!guard || !needsView) return answer;
    let now: MasterReply | undefined;
    let isLate = false;
    topology.views.confirm(partition, sent, (isConfirmed) => {
      const isSame = guard.records[partition]?.epoch === epoch;
      const counted: MasterReply =
        isConfirmed && isSame ? answer : { kind: 'quarantined', sent: true, ...(isConfirmed ? CHANGED : UNCONFIRMED) };
      if (!isConfirmed) topology.refreshSoon();
      if (isLate) one.reply(counted);
      else now = counted;
    });
    isLate = true;
    return now;
  }

  private fail(batch: Batch, error: unknown): void {
    const { node, asked, isFirst } = batch;
    const { topology } = this.context;
    const answer = node.failure(error, tokensOf(asked));
    const code = answer.kind === 'refused' ? answer.code : '';
    if (code === 'ASK' || code === 'TRYAGAIN') releaseOneByOne(topology, batch);
    if (isFirst && (code === 'MOVED' || code === 'NOSCRIPT')) {
      this.lookAgain(batch, asked, answer, code === 'NOSCRIPT');
      return;
    }
    if (['MOVED', 'CLUSTERDOWN', 'READONLY', 'LOADING', 'ASK', 'TRYAGAIN'].includes(code)) topology.refreshSoon();
    this.answerAll(asked, () => answer);
  }

  // Sends once more what may still be answered in time.
  // Protocol 12.4
  private lookAgain(batch: Batch, asked: readonly PendingRequest[], why: MasterReply, isOtherData: boolean): void {
    const { node, partition, sent, isFirst } = batch;
    const { topology, guard, clock, masterTimeout } = this.context;
    if (isOtherData) guard?.records[partition]?.doubt(LOST_DATA.reason);
    if (isOtherData) guard?.forget(node);
    const recognized = isOtherData ? node.recognize().catch(() => false) : Promise.resolve(true);
    const goOn = (): void => {
      const now = clock.read();
      const quarantine = guard?.records[partition]?.quarantineAt(now);
      const isLate = now.monotonic - sent.monotonic > masterTimeout;
      const again: PendingRequest[] = [];
      this.answerAll(asked, (one) => {
        const { request } = one;
        // What has been withdrawn was followed by its release already: sent again, it would come after it.
        if ('withdrawn' in request && request.withdrawn) return why;
        if (quarantine && isVote(request)) return { kind: 'quarantined', sent: true, ...quarantine };
        if (!isFirst || (isLate && request.op !== 'release')) return why;
        again.push(one);
        return undefined;
      });
      if (again.length > 0) this.send(partition, again, false);
    };
    recognized.then(() => topology.refresh()).then(goOn, goOn);
  }

  private sendState(batch: Batch, request: StateRequest, asked: PendingRequest): void {
    const { node, partition } = batch;
    const { names, guard, readsSeals, topology } = this.context;
    const record = guard?.records[partition];
    const marker = readsSeals ? names.sealOf(partition) : '';
    const { run = '', replid = '' } = node.identity ?? {};
    let meant = request;
    if (record && request.op !== 'read-state') {
      // The number of changes in the whole cluster that the holder knew.
      if (!record.seal || record.changedAt > Number(request.generation)) {
        asked.reply(OTHER_DATA);
        return;
      }
      meant = { ...request, generation: record.seal.generation };
    }
    const evaluate = (script: string, args: readonly (string | number)[]): Promise<unknown> => {
      const keys = keysOf([request], [marker]);
      return node.call('eval', [script, keys.length, ...keys, ...args]);
    };
    runStateRequest(meant, { marker, run, replid }, evaluate).then(
      (answer) => {
        if (answer === OTHER_DATA) {
          guard?.forget(node);
          record?.doubt(LOST_DATA.reason);
          topology.refreshSoon();
        }
        const counted =
          answer.kind === 'granted' && request.op !== 'read-state' ? this.confirmed(batch, asked, answer) : answer;
        if (counted) asked.reply(counted);
      },
      (error: unknown) => {
        topology.refreshSoon();
        asked.reply(node.failure(error, tokensOf([asked])));
      },
    );
  }

  private answerAll(
    asked: readonly PendingRequest[],
    answerTo: (one: PendingRequest, index: number) => MasterReply | undefined,
  ): void {
    asked.forEach((one, index) => {
      const answer = answerTo(one, index);
      if (answer) one.reply(answer);
    });
  }
}

export function noOwnerOf(partition: number): MasterReply {
  return { kind: 'unreachable', reason: `no primary is known for slot ${partition * 64}`, sent: false };
}
