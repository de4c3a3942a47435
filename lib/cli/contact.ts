import {
  type ConnectionProblem,
  type Language,
  problemFrom,
  type ProblemContext,
  problemWith,
} from '../redis/connection-problem.js';
import type { NamedClient } from '../redis/master-source.js';
import { languageOf } from '../redis/port-language.js';
import type { RedisClient } from '../redis/redis-client.interface.js';
import { isReply, refusalFrom, redactedMessageOf } from '../redis/replies.js';
import { type SentinelGroup, sentinelGroup } from '../redis/sentinel/sentinel-group.js';
import { SystemClock } from '../runtime/system-clock.js';

/** The answer of a server to one command. */
export type Outcome = { readonly value: unknown } | Failure;

/** Why there is no value: the server's error code or `UNREACHABLE`, and a reason that contains no secret. */
export interface Failure {
  readonly code: string;
  readonly reason: string;
  /** What to change, if that is known. */
  readonly advice?: string | undefined;
  /** Whether waiting cannot help. */
  readonly isPermanent?: boolean | undefined;
}

/** Whether the server refused the command or could not be reached. */
export function isFailure(outcome: Outcome): outcome is Failure {
  return 'code' in outcome;
}

/** A connection to one server for a few commands. It is opened once and not reopened when it breaks. */
export class Contact {
  readonly name: string;
  private readonly client: RedisClient;
  private readonly group: SentinelGroup | undefined;
  private readonly secrets: readonly string[];
  private trouble: unknown;

  constructor(
    { name, client }: NamedClient,
    private readonly timeout: number,
  ) {
    this.name = name;
    const { options } = client;
    this.group = options.sentinels
      ? sentinelGroup(name, options, { clock: new SystemClock(), isStrict: false })
      : undefined;
    this.client = client.duplicate({
      // No ready check: a server that is loading its data reports that in its answers.
      ...{ enableReadyCheck: false, retryStrategy: null },
      ...(this.group && { Connector: this.group.connections.connector }),
    });
    const { password, sentinelPassword } = options;
    this.secrets = [password, sentinelPassword].flatMap((secret) => (secret ? [secret] : []));
  }

  /** Opens the connection. Resolves with the reason if that fails. */
  async open(): Promise<Failure | undefined> {
    const ready = new Promise<void>((resolve, reject) => {
      this.client.on('error', (error) => {
        this.trouble ??= error;
        reject(error instanceof Error ? error : new Error(String(error)));
      });
      this.client.on('close', () => reject(new Error('the connection was closed')));
      this.client.on('ready', () => resolve());
      // Events report the result.
      this.client.connect().catch(() => undefined);
    });
    const failure = await this.failureOf(ready);
    return failure && this.explained(failure);
  }

  private async failureOf(ready: Promise<void>): Promise<Failure | undefined> {
    const opened = await this.settle(ready);
    // The client reports a refused login only after it has reported the connection as ready.
    const outcome = isFailure(opened) ? opened : await this.call('TIME');
    if (!isFailure(outcome)) return undefined;
    if (this.trouble !== undefined) return outcome;
    // A user without the permission for TIME still has a connection.
    return outcome.code === 'UNREACHABLE' || outcome.code === 'NOAUTH' ? outcome : undefined;
  }

  /** Names the problem of a connection that could not be opened, and what to change. */
  private async explained({ code, reason }: Failure): Promise<Failure> {
    const context = { usesTls: Boolean(this.client.options.tls), hasAnswered: false, secrets: this.secrets };
    const problem: ConnectionProblem =
      this.trouble === undefined ? { what: reason, isVague: true } : problemFrom(this.trouble, context);
    const found = problem.isVague ? await this.examine(context) : undefined;
    const { what, advice, isPermanent } = found ?? problem;
    return { code: /^[A-Z]{2,}(?= )/.exec(what)?.[0] ?? code, reason: what, advice, isPermanent };
  }

  private async examine({ usesTls }: ProblemContext): Promise<ConnectionProblem | undefined> {
    const { host, port, path, sentinels } = this.client.options;
    const isPort = host && port !== undefined && !path && !sentinels;
    const language: Language | undefined = isPort ? await languageOf({ host, port }) : undefined;
    return problemWith(language, usesTls);
  }

  call(command: string, ...args: (string | number)[]): Promise<Outcome> {
    return this.settle(this.client.call(command, args));
  }

  /** Subscribes to a channel. No other command can be called afterwards. */
  subscribe(channel: string): Promise<Outcome> {
    return this.settle(this.client.subscribe(channel));
  }

  close(): void {
    this.group?.views.close();
    this.client.disconnect();
  }

  private async settle(answer: Promise<unknown>): Promise<Outcome> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${this.timeout} ms`)), this.timeout);
    });
    try {
      return { value: await Promise.race([answer, late]) };
    } catch (error) {
      if (isReply(error)) return refusalFrom(error, this.secrets);
      return { code: 'UNREACHABLE', reason: redactedMessageOf(this.trouble ?? error, this.secrets) };
    } finally {
      clearTimeout(timer);
    }
  }
}
