import { type Translation } from '../nat-map.js';
import { redactedMessageOf } from '../replies.js';
import type { RedisClient } from '../redis-client.interface.js';
import type { Peer, SentinelAnswer } from './tally.js';

/** One sentinel that can be asked. */
export interface SentinelConnection {
  /** Rejects without an answer. */
  ask(): Promise<SentinelAnswer>;
  /** Drops the connection. The next question opens another one. */
  drop(): void;
}

interface SentinelOptions {
  /** Name of the primary. */
  readonly name: string;
  /** Creates a client that opens its connection with the first command, and not again. */
  readonly open: () => RedisClient;
  readonly translate: Translation;
  /** Strings that no message may contain. */
  readonly secrets: readonly string[];
}

/** A connection to one sentinel that stays open between the questions. */
export class Sentinel implements SentinelConnection {
  private client: RedisClient | undefined;
  /** The last error of the connection, which says more than that of a command. */
  private trouble: unknown;

  constructor(private readonly options: SentinelOptions) {}

  async ask(): Promise<SentinelAnswer> {
    const { name, translate, secrets } = this.options;
    const client = this.connected();
    const call = (...args: string[]): Promise<unknown> => client.call('sentinel', args);
    // In one write: what it says of itself belongs together.
    const [named, master, peers, id] = await Promise.allSettled([
      call('get-master-addr-by-name', name),
      call('master', name),
      call('sentinels', name),
      call('myid'),
    ]);
    if (named.status === 'rejected') {
      const trouble: unknown = this.trouble ?? named.reason;
      throw new Error(redactedMessageOf(trouble, secrets));
    }
    const [others, about] = [valueOf(peers), valueOf(master)];
    const address = named.value as readonly string[] | null;
    return {
      // Without the others and the epoch, its word cannot be counted.
      id: Array.isArray(others) && Array.isArray(about) ? textOf(valueOf(id)) : undefined,
      peers: Array.isArray(others) ? others.flatMap((fields) => peerFrom(fields, translate)) : [],
      named: address
        ? {
            address: translate({ host: address[0] ?? '', port: Number(address[1]) }),
            epoch: Number(fieldsOf(about).get('config-epoch') ?? 0),
          }
        : undefined,
    };
  }

  drop(): void {
    this.client?.disconnect();
    this.client = undefined;
  }

  private connected(): RedisClient {
    if (this.client && this.client.status !== 'end') return this.client;
    const client = this.options.open();
    this.trouble = undefined;
    client.on('error', (error) => (this.trouble = error));
    this.client = client;
    return client;
  }
}

function valueOf(result: PromiseSettledResult<unknown>): unknown {
  return result.status === 'fulfilled' ? result.value : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A list of names and values, as a map. */
function fieldsOf(list: unknown): ReadonlyMap<string, string> {
  const values = Array.isArray(list) ? list.map(String) : [];
  return new Map(values.flatMap((name, i) => (i % 2 === 0 ? [[name, values[i + 1] ?? '']] : [])));
}

function peerFrom(list: unknown, translate: Translation): readonly Peer[] {
  const fields = fieldsOf(list);
  const [id = '', host = '', port] = ['runid', 'ip', 'port'].map((name) => fields.get(name));
  return id === '' || host === '' ? [] : [{ id, address: translate({ host, port: Number(port) }) }];
}
