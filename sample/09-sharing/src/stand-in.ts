import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** What a stand-in for the carrier has seen. */
export interface Traffic {
  now: number;
  most: number;
  refused: number;
}

/**
 * Creates a server in place of the carrier's, which refuses calls beyond the limit.
 *
 * @param answered resolves when a call that was accepted may be answered; default: after 300 ms
 */
export function standIn(limit: number, answered = (): Promise<unknown> => sleep(300)): Server & { traffic: Traffic } {
  const traffic: Traffic = { now: 0, most: 0, refused: 0 };
  const server = createServer((request, response) => {
    if (traffic.now >= limit) {
      traffic.refused += 1;
      response.writeHead(429).end();
      return;
    }
    traffic.now += 1;
    traffic.most = Math.max(traffic.most, traffic.now);
    void answered().then(() => {
      traffic.now -= 1;
      response.end(`label of ${request.url ?? ''}`);
    });
  });
  return Object.assign(server, { traffic });
}
