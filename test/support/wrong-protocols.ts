// Two incorrect shortcuts to draw a fencing token. They prove that tests can fail.
import { Redis } from 'ioredis';
import type { DrawRequest, Master, ReplyCallback } from '../../lib/core/master.interface.js';

/**
 * - `right`: a master draws only while the client holds the key, and a larger answer becomes the token
 * - `for any holder`: a master draws whichever client holds the key
 * - `without adopting`: an answer of at least the client's token counts as that token
 */
export type Protocol = 'right' | 'for any holder' | 'without adopting';

/** KEYS: the hash of counters. ARGV: floor, step, counters. */
const DRAW = `
local drawn = tonumber(ARGV[1])
for i = 3, #ARGV do drawn = math.max(drawn, tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0) + ARGV[2]) end
drawn = string.format('%.0f', drawn)
for i = 3, #ARGV do redis.call('HSET', KEYS[1], ARGV[i], drawn) end
return drawn`;

/**
 * Makes masters draw tokens by another protocol. Returns a function that ends this.
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
  masters.forEach((master, index) => forAnyHolder(master, clients[index]!, counters));
  return () => {
    for (const client of clients) client.disconnect();
  };
}

function withoutAdopting(master: Master): void {
  // A number that is ahead of the clock cannot be a floor: it comes from an earlier round.
  const isConfirmation = ({ atLeast }: DrawRequest): boolean => atLeast > Date.now() * 1_000 + 1_000_000;
  replaceDraw(master, (request, reply, ask) => {
    ask((answer) =>
      reply(answer.kind === 'granted' && isConfirmation(request) ? { ...answer, fence: request.atLeast } : answer),
    );
  });
}

function forAnyHolder(master: Master, client: Redis, hash: string): void {
  replaceDraw(master, ({ atLeast, isFirst, counters }, reply) => {
    client.eval(DRAW, 1, hash, atLeast, isFirst ? 1 : 0, ...counters).then(
      (drawn) => reply({ kind: 'granted', fence: Number(drawn) }),
      (error: unknown) => reply({ kind: 'unreachable', reason: String(error), sent: true }),
    );
  });
}

type Drawing = (request: DrawRequest, reply: ReplyCallback, ask: (reply: ReplyCallback) => void) => void;

function replaceDraw(master: Master, draw: Drawing): void {
  const ask = master.ask.bind(master);
  master.ask = (request, reply) => {
    if (request.op === 'draw') draw(request, reply, (own) => ask(request, own));
    else ask(request, reply);
  };
}
