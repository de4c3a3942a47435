import {
  type ConnectionProblem,
  type Language,
  languageOf,
  type ProblemContext,
  problemFrom,
  problemWith,
} from '../redis/connection-problem.js';
import { secretsOf } from '../redis/connection.js';
import { ClusterClient } from '../redis/cluster/cluster-client.js';
import type { NamedClient } from '../redis/master-source.js';
import type { RedisClient } from '../redis/redis-client.interface.js';
import { isReply, redactedMessageOf, refusalFrom } from '../redis/replies.js';

export type ContactResult = { readonly value: unknown } | ContactFailure;

// The code is that of the server, or `UNREACHABLE`. The reason contains no secret.
export interface ContactFailure {
  readonly code: string;
  readonly reason: string;
  readonly advice?: string | undefined;
  // Waiting cannot help.
  readonly isPermanent?: boolean | undefined;
}

export function isFailure(outcome: ContactResult): outcome is ContactFailure {
  return 'code' in outcome;
}

const HANGS =
  'its port takes connections, so it hangs or is slow: look at its load and its log, or give a longer --timeout';

// A connection for a few commands: it is opened once and not reopened when it breaks.
export class Contact {
  readonly name: string;
  readonly isCluster: boolean;
  private readonly client: RedisClient;
  private readonly secrets: readonly string[];
  private trouble: unknown;
  private isOpen = false;

  constructor(
    { name, client }: NamedClient,
    private readonly timeout: number,
  ) {
    this.name = name;
    const { options } = client;
    this.client = client.duplicate({
      // No ready check: a server that is loading its data reports that in its answers.
      ...{ enableReadyCheck: false, retryStrategy: null },
    });
    this.isCluster = client instanceof ClusterClient;
    this.secrets = secretsOf(options);
  }

  async use<T>(action: () => Promise<T>, failed: (failure: ContactFailure) => T): Promise<T> {
    try {
      const failure = await this.open();
      return failure ? failed(failure) : await action();
    } finally {
      this.close();
    }
  }

  async open(): Promise<ContactFailure | undefined> {
    const ready = new Promise<void>((resolve, reject) => {
      this.client.on('error', (error) => {
        this.trouble ??= error;
        reject(error instanceof Error ? error : new Error(String(error)));
      });
      this.client.on('close', () => reject(new Error('the connection was closed')));
      this.client.on('connect', () => (this.isOpen = true));
      this.client.on('ready', () => resolve());
      // Events report the result.
      this.client.connect().catch(() => undefined);
    });
    const failure = await this.failureOf(ready);
    return failure && this.explained(failure);
  }

  private async failureOf(ready: Promise<void>): Promise<ContactFailure | undefined> {
    const opened = await this.settle(ready);
    // The client reports a refused login only after it has reported the connection as ready.
    const outcome = isFailure(opened) ? opened : await this.call('TIME');
    if (!isFailure(outcome)) return undefined;
    if (this.trouble !== undefined) return outcome;
    // A user without the permission for TIME still has a connection.
    return outcome.code === 'UNREACHABLE' || outcome.code === 'NOAUTH' ? outcome : undefined;
  }

  private async explained({ code, reason }: ContactFailure): Promise<ContactFailure> {
    const context = { usesTls: Boolean(this.client.options.tls), hasAnswered: false, secrets: this.secrets };
    const problem: ConnectionProblem =
      this.trouble === undefined
        ? { what: reason, isVague: true, ...(this.isOpen && { advice: HANGS }) }
        : problemFrom(this.trouble, context);
    const found = problem.isVague ? await this.examine(context) : undefined;
    const { what, advice, isPermanent } = found ?? problem;
    return { code: /^(?!ERR )[A-Z]{2,}(?= )/.exec(what)?.[0] ?? code, reason: what, advice, isPermanent };
  }

  private async examine({ usesTls }: ProblemContext): Promise<ConnectionProblem | undefined> {
    const { host, port, path, sentinels } = this.client.options;
    const isPort = host && port !== undefined && !path && !sentinels;
    const language: Language | undefined = isPort ? await languageOf({ host, port }) : undefined;
    return problemWith(language, usesTls);
  }

  call(command: string, ...args: (string | number)[]): Promise<ContactResult> {
    return this.settle(this.client.call(command, args));
  }

  // A subscribed connection can only listen: no other command may follow.
  subscribe(channel: string): Promise<ContactResult> {
    return this.settle(this.client.subscribe(channel));
  }

  close(): void {
    this.client.disconnect();
  }

  private async settle(answer: Promise<unknown>): Promise<ContactResult> {
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
