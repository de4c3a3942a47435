import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ConflictException } from '@nestjs/common';
import type { ProcessState } from '../masters/local-masters.js';
import type { News } from '../worker/news.js';
import type { Setup } from '../worker/setup.js';

const PROGRAM = fileURLToPath(new URL('../../dist/worker/main.js', import.meta.url));
/** Waits until its stdin closes, which happens however this process ends. Then it ends an instance, paused or not. */
const GUARD = 'read -r _; kill -9 "$1"';
const SIGNALS = { pause: 'SIGSTOP', resume: 'SIGCONT' } as const;

export type InstanceCommand = keyof typeof SIGNALS;

export function isInstanceCommand(text: string): text is InstanceCommand {
  return Object.hasOwn(SIGNALS, text);
}

/** One instance of the application with the jobs, in a process of its own. */
export class Instance {
  private readonly child: ChildProcess;
  private readonly ended: Promise<unknown>;
  private hasEnded = false;
  private isPaused = false;

  constructor(
    readonly name: string,
    setup: Setup,
    onNews: (news: News) => void,
  ) {
    this.child = fork(PROGRAM, [JSON.stringify(setup)], { execArgv: [] });
    this.child.on('message', (news) => onNews(news as News));
    this.ended = once(this.child, 'exit')
      .catch(() => undefined)
      .then(() => {
        this.hasEnded = true;
        guard?.kill('SIGKILL');
      });
    const guard = this.pid === undefined ? undefined : guardOf(this.pid);
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get state(): ProcessState {
    if (this.hasEnded) return 'ended';
    return this.isPaused ? 'paused' : 'running';
  }

  carryOut(command: InstanceCommand): void {
    const [wanted, next]: ProcessState[] = command === 'pause' ? ['running', 'paused'] : ['paused', 'running'];
    if (this.state !== wanted) {
      throw new ConflictException(`an instance that is ${this.state} cannot ${command}`);
    }
    this.child.kill(SIGNALS[command]);
    this.isPaused = next === 'paused';
  }

  /** Ends the instance at once, paused or not. Its locks expire, as after any crash. */
  async stop(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

function guardOf(pid: number): ChildProcess {
  // A process group of its own: Ctrl-C in a terminal must not end the guard before it has cleaned up.
  const guard = spawn('/bin/sh', ['-c', GUARD, 'instance-guard', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.unref();
  return guard;
}
