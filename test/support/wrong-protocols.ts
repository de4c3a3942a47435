// Two shorter ways to confirm a fencing token that look right and are not. For tests that must be able to fail.
import { Redis } from 'ioredis';
import type { ConfirmRequest, Master, Reply } from '../../lib/core/master.interface.js';

/**
 * - `right`: a master raises its counter only while the key is the holder's, and a larger answer becomes the token
 * - `to any majority`: it raises its counter whoever has the key
 * - `without adopting`: "at least my token" passes for "my token"
 */
export type Protocol = 'right' | 'to any majority' | 'without adopting';

/** KEYS: the hash of counters. ARGV: token, counters. */
const RAISE = `
local fence = tonumber(ARGV[1])
for i = 2, #ARGV do fence = math.max(fence, tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0)) end
local raised = string.format('%.0f', fence)
for i = 2, #ARGV do redis.call('HSET', KEYS[1], ARGV[i], raised) end
return raised`;

/**
 * Makes masters confirm tokens by another protocol. Returns what ends it.
 *
 * @param counters name of the hash of counters
 */
export function useProtocol(
  protocol: Protocol,
  masters: readonly Master[],
  urls: readonly string[],
  counters: string,
): () => void {
  if (protocol === 'right') return () => undefined;
  if (protocol === 'without adopting') {
    for (const master of masters) withoutAdopting(master);
    return () => undefined;
  }
  const clients = urls.map((url) => new Redis(url));
  masters.forEach((master, index) => toAnyMajority(master, clients[index]!, counters));
  return () => {
    for (const client of clients) client.disconnect();
  };
}

function withoutAdopting(master: Master): void {
  replaceConfirm(master, (request, reply, ask) => {
    ask((answer) => reply(answer.kind === 'granted' ? { ...answer, fence: request.fence.token } : answer));
  });
}

function toAnyMajority(master: Master, client: Redis, counters: string): void {
  replaceConfirm(master, ({ fence: { token, fields } }, reply) => {
    client.eval(RAISE, 1, counters, token, ...fields).then(
      (raised) => reply({ kind: 'granted', fence: Number(raised) }),
      (error: unknown) => reply({ kind: 'unreachable', reason: String(error), sent: true }),
    );
  });
}

type Confirm = (request: ConfirmRequest, reply: Reply, ask: (reply: Reply) => void) => void;

function replaceConfirm(master: Master, confirm: Confirm): void {
  const ask = master.ask.bind(master);
  master.ask = (request, reply) => {
    if (request.op === 'confirm') confirm(request, reply, (own) => ask(request, own));
    else ask(request, reply);
  };
}
