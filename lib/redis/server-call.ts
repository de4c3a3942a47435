import type { Instant } from '../core/clock.js';
import type { Keyspace } from '../core/keyspace.js';
import type { MasterReply, Quarantine, UnreachableReply } from '../core/master.interface.js';
import type { Connection } from './connection.js';
import type { RestartGuard } from './guard/restart-guard.js';
import type { ServerRecord } from './guard/server-record.js';
import type { Recognition } from './recognition.js';
import type { RedisClient, RedisMasterContext } from './redis-client.interface.js';
import { isStateRequest, OTHER_DATA, runStateRequest, type StateRequest } from './redis-state.js';
import { isReply, LOST_DATA, millisecondsFrom } from './replies.js';
import { grantsKeys, isNewLock, isVote, type ServerRequest } from './request-encoding.js';
import type { PendingRequest } from './request-queue.js';
import { ScriptCall, type Verdict } from './script-call.js';
import { EXTENDED_AFTER_HEAL } from './scripts/constants.js';
import type { PrimaryWatch } from './sentinel/primary-watch.js';

export const RECOGNIZED_ANEW: Quarantine = Object.freeze({ reason: 'its identity changed meanwhile', remaining: 1 });

const UNNAMED: Quarantine = Object.freeze({ reason: 'its sentinels name another primary', remaining: 1 });

export const UNANNOUNCED: Quarantine = Object.freeze({ reason: 'it has not confirmed the ttl yet', remaining: 1 });

export interface CalledServer {
  readonly context: RedisMasterContext;
  readonly client: RedisClient;
  readonly connection: Connection;
  readonly keyspace: Keyspace;
  readonly recognition: Recognition;
  readonly guard: RestartGuard | undefined;
  readonly data: ServerRecord | undefined;
  readonly watch: PrimaryWatch | undefined;
  readonly isListening: boolean;
  readonly quarantine: Quarantine | undefined;
  problem(): UnreachableReply | undefined;
  onVoting(): void;
}

export class ServerCall extends ScriptCall<ServerRecord> {
  // That the connection led to when the requests were sent.
  private readonly primary: string | undefined;
  private mayCount = true;
  private isChecking = false;
  private received: Instant;

  constructor(
    private readonly server: CalledServer,
    asked: readonly PendingRequest[],
    repetitions = 0,
  ) {
    const { connection, context, data, watch } = server;
    const sent = context.clock.read();
    super(connection, asked, sent, data, repetitions);
    this.received = sent;
    if (!watch || !data) return;
    watch.refresh(sent);
    this.primary = watch.key;
  }

  run(command: 'evalsha' | 'eval'): void {
    const { asked, history, data } = this;
    const { client, context, guard, isListening, keyspace, recognition } = this.server;
    const { script } = recognition;
    const requests = asked.map(({ request }) => request);
    const parts = context.encoder.encode(requests, isListening);
    const known = command === 'eval' ? script.text : script.sha1;
    const parameters = [known, '0', guard?.markerName ?? '', data?.nonce ?? '', history, keyspace.counters, ...parts];
    client.call(command, parameters).then(
      (values) => this.receive(values),
      (error: unknown) => {
        const answer = this.failure(error);
        if (isUnknownScript(error))
          this.repeat(asked, answer); // @mutant noscript-taken-as-reload
        else for (const one of asked) one.reply(answer);
      },
    );
  }

  runState(request: StateRequest, one: PendingRequest): void {
    const { client, context, guard, keyspace, recognition } = this.server;
    const known = {
      marker: guard || context.readsMarkers ? keyspace.marker : '',
      run: recognition.lastReport?.run ?? '',
      replid: this.data?.replid ?? '',
    };
    runStateRequest(request, known, (script, args) => client.call('eval', [script, 0, ...args])).then(
      (answer) => {
        // Otherwise the next request would learn no more, and be refused as well.
        if (answer === OTHER_DATA) recognition.run().catch(() => undefined);
        const counted = answer.kind === 'granted' ? this.onceNamed(one, answer) : answer;
        if (counted) one.reply(counted);
      },
      (error: unknown) => one.reply(this.failure(error)),
    );
  }

  protected quarantineAfter(values: readonly unknown[], isMarked: boolean): Quarantine | undefined {
    const { data, server } = this;
    const time = values[this.asked.length];
    if (data) this.received = server.context.clock.read();
    // An answer without the marker may be that of another server, whose clock shows another time.
    this.mayCount = this.isCurrent && (!isMarked || this.checkClock(time));
    if (data) {
      if (time !== undefined) data.contactedAt = this.received.monotonic;
      this.isChecking = data.state === 'checking';
    }
    return server.quarantine ?? (this.mayCount ? undefined : RECOGNIZED_ANEW);
  }

  // While the identity of the data is checked, an answer counts for nothing: the request is repeated with its token.
  protected doubtAbout({ request }: PendingRequest, value: unknown): MasterReply | undefined {
    // A key that was set again is there at the repetition: its answer must not hide that.
    const isInDoubt = !this.mayCount && this.isChecking && grantsKeys(request) && value !== EXTENDED_AFTER_HEAL;
    return isInDoubt ? LOST_DATA : undefined;
  }

  // A grant whose ttl the server has not confirmed does not count: the quarantine of another could be too short.
  protected confirmed(one: PendingRequest, grant: MasterReply): MasterReply | undefined {
    const { data, received, sent } = this;
    const { guard } = this.server;
    const { request } = one;
    if (!data || !guard) return grant;
    if (request.op === 'beat') data.confirmTtl(request.ttl, sent);
    // Protocol 8.9
    if (!grantsKeys(request) || data.knewTtl(request.ttl, received)) return this.onceNamed(one, grant);
    guard.ttls.repeat();
    return this.withheld(UNANNOUNCED);
  }

  // A server that does not know the script, which belongs to one run of it, may be another one, or have lost its data: it
  // has to identify itself before it is asked again.
  // Protocol 8.1
  protected examine(why: MasterReply, goOn: (verdict: Verdict) => void): void {
    const { server, data } = this;
    const { recognition } = server;
    const before = recognition.lastReport?.run;
    const nonce = data?.nonce;
    const judge = (): void => {
      const problem = server.problem();
      const { quarantine } = server;
      const isOther = recognition.lastReport?.run !== before || data?.nonce !== nonce;
      // Another server over the same connection may be one that has a vote already.
      if (isOther && !problem) server.onVoting();
      goOn((request) => {
        if (problem) return problem;
        if (isOther && !quarantine && request.op !== 'release') return why;
        return quarantine && isNewLock(request) ? this.withheld(quarantine) : undefined;
      });
    };
    recognition.check().then(judge, judge);
  }

  // With the text of the script, since the client may not have been allowed to load it.
  protected sendAgain(asked: readonly PendingRequest[]): void {
    new ServerCall(this.server, asked, this.repetitions + 1).run('eval');
  }

  // `undefined` while only the sentinels can say whether the grant counts: then it is given as soon as they have.
  private onceNamed(one: PendingRequest, grant: MasterReply): MasterReply | undefined {
    const { primary, sent } = this;
    const { watch } = this.server;
    if (!watch || !this.data || !countsIfNamed(one.request) || watch.isConfirmed(primary, sent)) return grant;
    void watch.confirm(primary, sent).then((isConfirmed) => {
      const doubt = watch.quarantine ?? (isConfirmed ? RECOGNIZED_ANEW : UNNAMED);
      one.reply(isConfirmed && this.isCurrent ? grant : this.withheld(doubt));
    });
    return undefined;
  }

  private checkClock(time: unknown): boolean {
    const { guard } = this.server;
    if (!guard || !this.data || time === undefined) return true;
    return guard.sampled(this.data, this.sent, millisecondsFrom(time), this.received); // @mutant clock-of-a-server-not-looked-at
  }
}

// Votes, states, and ttls that other masters rely on.
function countsIfNamed(request: ServerRequest): boolean {
  return isVote(request) || isStateRequest(request) || (request.op === 'beat' && request.ttl > 0);
}

function isUnknownScript(error: unknown): boolean {
  return isReply(error) && error.message.startsWith('NOSCRIPT');
}
