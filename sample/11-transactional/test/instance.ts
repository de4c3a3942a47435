import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('application.mjs', import.meta.url));

/** The events that an instance reports. */
export type InstanceEvent =
  'is ready' | 'found it locked' | 'has read the stock' | 'charges' | 'wants to commit' | 'is done';

/** One instance of the application, in a process of its own. */
export class Instance {
  private readonly events = new EventEmitter();
  private readonly ended: Promise<unknown>;

  private constructor(private readonly child: ChildProcess) {
    this.ended = once(child, 'exit');
    child.on('message', ([event, detail]: [InstanceEvent, unknown]) => this.events.emit(event, detail));
  }

  static async start(env: NodeJS.ProcessEnv): Promise<Instance> {
    // Without the options that jest needs.
    const instance = new Instance(fork(PROGRAM, { env: { ...process.env, ...env, NODE_OPTIONS: '' } }));
    await instance.hear('is ready');
    return instance;
  }

  on(event: InstanceEvent, listener: (detail: string) => void): void {
    this.events.on(event, listener);
  }

  /** Resolves when the instance next reports one of these events; rejects if it ends before. */
  async hear(...events: InstanceEvent[]): Promise<string> {
    const ended = this.ended.then(() => {
      throw new Error(`The instance ended before it reported that it ${events.join(' or ')}`);
    });
    const [detail] = (await Promise.race([...events.map((event) => once(this.events, event)), ended])) as [string];
    return detail;
  }

  send(order: 'sell' | 'commit', ...details: string[]): void {
    this.child.send([order, ...details]);
  }

  async stop(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}
