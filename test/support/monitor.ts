import { Redis } from 'ioredis';
import { eventually } from './eventually.js';

/** A command that a server has executed: from a client, or from within a script. Arguments are as MONITOR shows them. */
export interface SeenCommand {
  readonly isInScript: boolean;
  readonly args: readonly string[];
}

/** What a server executes, by MONITOR. */
export class Monitor implements AsyncDisposable {
  readonly seen: SeenCommand[] = [];

  private constructor(
    private readonly client: Redis,
    private readonly monitoring: Redis,
  ) {
    monitoring.on('monitor', (_time: string, args: readonly string[], source: string) => {
      this.seen.push({ isInScript: source === 'lua', args });
    });
  }

  static async on(port: number): Promise<Monitor> {
    const client = new Redis(port, '127.0.0.1');
    return new Monitor(client, await client.monitor());
  }

  /** Resolves when everything that the server has executed so far was seen. */
  async settle(): Promise<void> {
    const mark = `settled ${Math.random()}`;
    await this.client.echo(mark);
    await eventually(() => this.seen.some(({ args }) => args.includes(mark)));
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.client.disconnect();
    this.monitoring.disconnect();
    return Promise.resolve();
  }
}
