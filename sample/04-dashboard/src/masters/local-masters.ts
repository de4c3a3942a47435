import { ConflictException, NotFoundException, type OnApplicationShutdown } from '@nestjs/common';
import { ensureRedisServer, RedisServer } from '../../../../scripts/redis-servers.mjs';

/** State of a server process. A `paused` process stands still with its connections open. */
export type ProcessState = 'running' | 'paused' | 'ended';

/** The commands for a master, and the states in which each is possible. */
const COMMANDS = {
  pause: ['running'],
  resume: ['paused'],
  kill: ['running', 'paused'],
  restart: ['running', 'paused', 'ended'],
} satisfies Record<string, ProcessState[]>;

export type MasterCommand = keyof typeof COMMANDS;

export function isMasterCommand(text: string): text is MasterCommand {
  return Object.hasOwn(COMMANDS, text);
}

/** The masters that this application has started itself, on free ports of the loopback interface. */
export class LocalMasters implements OnApplicationShutdown {
  private constructor(private readonly masters: readonly LocalMaster[]) {}

  /** @throws if this machine has no Redis server and none can be installed; the message says what to type */
  static async start(count: number): Promise<LocalMasters> {
    await ensureRedisServer();
    const starts = await Promise.allSettled(Array.from({ length: count }, () => RedisServer.start()));
    const servers = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    const failed = starts.find((start) => start.status === 'rejected');
    if (!failed) return new LocalMasters(servers.map((server) => new LocalMaster(server)));
    await Promise.all(servers.map((server) => server.stop()));
    throw failed.reason;
  }

  get urls(): string[] {
    return this.masters.map(({ url }) => url);
  }

  /** In the order of {@link urls}. */
  get processes(): readonly Pick<LocalMaster, 'pid' | 'state'>[] {
    return this.masters;
  }

  /** @param number from 1 */
  find(number: number): LocalMaster {
    const master = this.masters[number - 1];
    if (!master) throw new NotFoundException(`there is no master ${number}`);
    return master;
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.masters.map((master) => master.stop()));
  }
}

/** One of the masters. */
export class LocalMaster {
  private isPaused = false;
  /** A restart takes a moment. Commands that arrive meanwhile run afterwards. */
  private last: Promise<void> = Promise.resolve();

  constructor(private readonly server: RedisServer) {}

  get url(): string {
    return this.server.url;
  }

  /** Undefined while it is down. */
  get pid(): number | undefined {
    return this.server.pid;
  }

  get state(): ProcessState {
    if (this.pid === undefined) return 'ended';
    return this.isPaused ? 'paused' : 'running';
  }

  /** Resolves when the command is done. A restarted server accepts connections by then. */
  carryOut(command: MasterCommand): Promise<void> {
    const done = this.last.then(() => this.doNow(command));
    this.last = done.catch(() => undefined);
    return done;
  }

  async stop(): Promise<void> {
    await this.last;
    await this.server.stop();
  }

  private async doNow(command: MasterCommand): Promise<void> {
    if (!COMMANDS[command].some((state) => state === this.state)) {
      throw new ConflictException(`a master that is ${this.state} cannot ${command}`);
    }
    await this.server[command]();
    this.isPaused = command === 'pause';
  }
}
