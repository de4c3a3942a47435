export interface RedisServerOptions {
  /** @default a free one */
  port?: number;
  /** More `redis-server` arguments, e.g. `['--requirepass', 'secret']`. They override the defaults. */
  args?: readonly string[];
  /** More environment variables of the process. */
  env?: Readonly<Record<string, string>>;
  /** Working directory, kept by `stop()`. @default a temporary one, removed by `stop()` */
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
  /** Process id; undefined while the server is down. */
  readonly pid: number | undefined;
  /** SIGSTOP: connections stay open, nothing is answered. */
  pause(): void;
  /** SIGCONT: the server carries out whatever reached it meanwhile. */
  resume(): void;
  /** SIGKILL, paused or not; resolves when the process is gone. */
  kill(): Promise<void>;
  /** `kill()` if it is up, then the same port and directory again. */
  restart(): Promise<void>;
  /** Ends it for good, in whatever state it is. Safe to call twice. */
  stop(): Promise<void>;
}

/** Path of `redis-server` or `valkey-server`: the variable `REDIS_SERVER`, else what PATH has. */
export declare function findRedisServer(): string | undefined;

/** Name and version of a server's program, e.g. `Redis 7.0.15` or `Valkey 9.1.2`. */
export declare function versionOfServer(binary: string): Promise<string>;

/** Installs a server if there is none and no question has to be asked; rejects with the one line to type otherwise. */
export declare function ensureRedisServer(): Promise<string>;
