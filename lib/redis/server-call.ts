import { createHash } from 'node:crypto';
import type { Keyspace } from '../settings/keyspace.js';
import type { MasterReply } from '../masters/master.interface.js';
import type { Connection } from './connection.js';
import type { RedisClient, RedisMasterContext } from './redis-client.interface.js';
import { isReply, replyFrom, valuesFrom } from './replies.js';
import { type PendingRequest, tokensOf } from './request-queue.js';
import { runStateRequest, type StateRequest } from './redis-state.js';
import type { RestartGate } from './restart-gate.js';
import { LOCKS } from './scripts/lua.generated.js';

// The script does not begin with `#!lua`: a server that is out of memory refuses such a script as a whole. It runs a
// script without that line, and refuses only the commands that need memory. PEXPIRE and DEL do not.
export const SCRIPT = Object.freeze({ text: LOCKS, sha1: createHash('sha1').update(LOCKS).digest('hex') });

export interface CalledServer {
  readonly context: RedisMasterContext;
  readonly client: RedisClient;
  readonly connection: Connection;
  readonly keyspace: Keyspace;
  readonly isListening: boolean;
  // `undefined` where the restart guard is off.
  readonly gate: RestartGate | undefined;
  // After each answer that has passed the gate, or was refused by it.
  noteGate(): void;
}

// One script with the requests of one turn of the event loop.
export class ServerCall {
  private readonly connection: number;

  constructor(
    private readonly server: CalledServer,
    private readonly asked: readonly PendingRequest[],
  ) {
    this.connection = server.connection.number;
  }

  run(): void {
    this.send('evalsha', SCRIPT.sha1, this.asked);
  }

  runState(request: StateRequest, one: PendingRequest): void {
    const { client, context, gate, keyspace } = this.server;
    const isGated = gate !== undefined || request.op === 'read-state';
    const known = { marker: isGated ? keyspace.marker : '', maxTtl: Math.ceil(context.settings.maxTtl) };
    runStateRequest(request, known, (script, args) => client.call('eval', [script, 0, ...args])).then(
      (answer) => this.deliver(one, answer),
      (error: unknown) => one.reply(this.failure(error)),
    );
  }

  private send(command: 'evalsha' | 'eval', script: string, asked: readonly PendingRequest[]): void {
    const { client, context, gate, isListening, keyspace } = this.server;
    const requests = asked.map(({ request }) => request);
    const parts = context.encoder.encode(requests, isListening);
    const marker = gate ? keyspace.marker : '';
    client.call(command, [script, '0', marker, Math.ceil(context.settings.maxTtl), keyspace.counters, ...parts]).then(
      (values) => this.receive(values, asked),
      (error: unknown) => {
        if (command === 'evalsha' && isReply(error) && error.message.startsWith('NOSCRIPT')) this.sendText(error);
        else for (const one of asked) one.reply(this.failure(error));
      },
    );
  }

  // The server has lost its scripts. What has been withdrawn was followed by its release already, and a request is
  // repeated over its own connection only, since another one may lead to another server.
  // Protocol 8.5
  private sendText(noScript: Error): void {
    const { connection } = this.server;
    const problem =
      connection.unreachable() ?? (connection.number === this.connection ? undefined : connection.replaced());
    const again = this.asked.filter((one) => {
      const { request } = one;
      const isWithdrawn = 'withdrawn' in request && request.withdrawn;
      if (isWithdrawn || problem) one.reply(problem ?? this.failure(noScript));
      return !isWithdrawn && !problem;
    });
    if (again.length > 0) this.send('eval', SCRIPT.text, again);
  }

  private receive(reply: unknown, asked: readonly PendingRequest[]): void {
    const values = valuesFrom(reply, asked.length);
    const from = values?.[asked.length];
    if (typeof from === 'string') {
      this.server.gate?.pass(from);
      this.server.noteGate();
    }
    asked.forEach((one, index) => this.deliver(one, this.answerTo(one, values?.[index])));
  }

  private deliver(one: PendingRequest, answer: MasterReply): void {
    if (answer.kind !== 'quarantined' || answer.reason !== '') {
      one.reply(answer);
      return;
    }
    const { gate } = this.server;
    gate?.shut(answer.remaining);
    this.server.noteGate();
    one.reply({ ...answer, ...gate?.quarantine });
  }

  private answerTo(one: PendingRequest, value: unknown): MasterReply {
    return isReply(value) ? this.failure(value, [one]) : replyFrom(value);
  }

  private failure(error: unknown, asked = this.asked): MasterReply {
    return this.server.connection.failure(error, tokensOf(asked));
  }
}
