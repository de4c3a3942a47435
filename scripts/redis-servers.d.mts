export interface RedisServerOptions {
  /** @default a free port */
  port?: number;
  /** More `redis-server` arguments, e.g. `['--requirepass', 'secret']`. They override the defaults. */
  args?: readonly string[] | ((port: number) => readonly string[]);
  /** More environment variables of the process. */
  env?: Readonly<Record<string, string>>;
  /** Working directory, kept by `stop()`. @default a temporary directory, which `stop()` removes */
  dir?: string;
}

/** One server process on 127.0.0.1, without persistence. It ends with the process that started it. */
export declare class RedisServer {
  private constructor();
  /** Resolves when the server accepts connections. */
  static start(options?: RedisServerOptions): Promise<RedisServer>;
  readonly port: number;
  /** `redis://127.0.0.1:<port>` */
  readonly url: string;
  /** Its working directory, which `stop()` removes unless it was given. */
  readonly dir: string;
  /** Process id; undefined while the server is down. */
  readonly pid: number | undefined;
  /** SIGSTOP: connections stay open, and the server does not answer. */
  pause(): void;
  /** SIGCONT: the server executes the commands that it received meanwhile. */
  resume(): void;
  /** SIGKILL, paused or not; resolves when the process is gone. */
  kill(): Promise<void>;
  /** `kill()` if it is running, then starts it again with the same port and directory. */
  restart(): Promise<void>;
  /** Ends it for good, whatever its state is. Safe to call twice. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Path of `redis-server` or `valkey-server`: the variable `REDIS_SERVER`, else a server in PATH. */
export declare function findRedisServer(): string | undefined;

/** Name and version of a server's program, e.g. `Redis 7.0.15` or `Valkey 9.1.2`. */
export declare function versionOfServer(binary: string): Promise<string>;

/** Installs a server if it is missing and no password is needed; otherwise rejects with the command to run. */
export declare function ensureRedisServer(): Promise<string>;
