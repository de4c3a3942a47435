import type { RedisMasterSource } from '../redis/master-source.js';
import { redisClient } from '../redis/master-source.js';
import type { RedisClient } from '../redis/redis-client.interface.js';
import { isReply, refusalFrom, redactedMessageOf } from '../redis/replies.js';

/** The answer of a server to one command. */
export type Outcome = { readonly value: unknown } | Failure;

/** Why there is no value: the server's error code or `UNREACHABLE`, and a reason that contains no secret. */
export interface Failure {
  readonly code: string;
  readonly reason: string;
}

/** Whether the server refused the command or could not be reached. */
export function isFailure(outcome: Outcome): outcome is Failure {
  return 'code' in outcome;
}

/** A connection to one server for a few commands. It is opened once and not reopened when it breaks. */
export class Contact {
  readonly name: string;
  private readonly client: RedisClient;
  private readonly secrets: readonly string[];
  private trouble: string | undefined;

  constructor(
    option: string,
    source: RedisMasterSource,
    private readonly timeout: number,
  ) {
    const { name, client } = redisClient(option, source);
    this.name = name;
    // No ready check: a server that is loading its data reports that in its answers.
    this.client = client.duplicate({ enableReadyCheck: false, retryStrategy: null });
    const { password, sentinelPassword } = client.options;
    this.secrets = [password, sentinelPassword].flatMap((secret) => (secret ? [secret] : []));
  }

  /** Opens the connection. Resolves with the reason if that fails. */
  async open(): Promise<Failure | undefined> {
    const ready = new Promise<void>((resolve, reject) => {
      this.client.on('error', (error) => {
        this.trouble ??= redactedMessageOf(error, this.secrets);
        reject(new Error(this.trouble));
      });
      this.client.on('close', () => reject(new Error('the connection was closed')));
      this.client.on('ready', () => resolve());
      // Events report the result.
      this.client.connect().catch(() => undefined);
    });
    const opened = await this.settle(ready);
    // The client reports a refused login only after it has reported the connection as ready.
    const outcome = isFailure(opened) ? opened : await this.call('TIME');
    if (!isFailure(outcome)) return undefined;
    if (this.trouble !== undefined)
      return { code: /^[A-Z]+(?= )/.exec(this.trouble)?.[0] ?? 'UNREACHABLE', reason: this.trouble };
    // A user without the permission for TIME still has a connection.
    return outcome.code === 'UNREACHABLE' || outcome.code === 'NOAUTH' ? outcome : undefined;
  }

  call(command: string, ...args: (string | number)[]): Promise<Outcome> {
    return this.settle(this.client.call(command, args));
  }

  /** Subscribes to a channel. No other command can be called afterwards. */
  subscribe(channel: string): Promise<Outcome> {
    return this.settle(this.client.subscribe(channel));
  }

  close(): void {
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
      return { code: 'UNREACHABLE', reason: this.trouble ?? redactedMessageOf(error, this.secrets) };
    } finally {
      clearTimeout(timer);
    }
  }
}
