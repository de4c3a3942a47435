import { REVOKED } from '../core/holder.js';
import type { KeyValue, MasterReply, OperatorMaster } from '../core/master.interface.js';
import { READ, REVOKE, VALUES } from './scripts/revoke.lua.js';

/** The connection of a master, as the actions of operators use it. */
export interface OperatorConnection {
  /** Why the master cannot take requests now; `undefined` if it can. */
  problem(): MasterReply | undefined;
  /** Runs a script on some keys. */
  evaluate(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Turns an error into an answer that contains none of these tokens. */
  failure(error: unknown, tokens: readonly string[]): MasterReply;
}

/** The actions of operators on a server. */
export class RedisOperator implements OperatorMaster {
  constructor(private readonly connection: OperatorConnection) {}

  async read(key: string): Promise<KeyValue | MasterReply | null> {
    const reply = await this.run(READ, [key], []);
    if ('kind' in reply) return reply;
    if (!Array.isArray(reply.value)) return null;
    const [value, remaining] = reply.value as [string, number];
    return { value, remaining };
  }

  async values(keys: readonly string[]): Promise<readonly (string | null)[] | MasterReply> {
    const reply = await this.run(VALUES, keys, []);
    return 'kind' in reply ? reply : (reply.value as (string | null)[]);
  }

  async revoke(key: string, value: string): Promise<number | MasterReply> {
    const reply = await this.run(REVOKE, [key], [value, REVOKED]);
    return 'kind' in reply ? reply : Number(reply.value);
  }

  private async run(
    script: string,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<{ readonly value: unknown } | MasterReply> {
    const problem = this.connection.problem();
    if (problem) return problem;
    try {
      return { value: await this.connection.evaluate(script, keys, args) };
    } catch (error) {
      return this.connection.failure(error, args);
    }
  }
}
