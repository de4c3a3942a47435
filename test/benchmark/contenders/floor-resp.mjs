import { createHash } from 'node:crypto';
import { Connection } from './resp/connection.mjs';
import { newToken, RELEASE } from './floor.mjs';

/**
 * The lowest cost of a lock over plain sockets: requests are encoded once for all masters, with one write per master
 * and tick.
 */
export async function connect(urls) {
  const connections = await Promise.all(urls.map((url) => Connection.open(url)));
  const sha = createHash('sha1').update(RELEASE).digest('hex');
  const sendToAll = (...parts) => {
    const bytes = encode(parts);
    return new Promise((resolve, reject) => {
      let pending = connections.length;
      const reply = (value) => {
        if (value instanceof Error) reject(value);
        else if (--pending === 0) resolve();
      };
      for (const connection of connections) connection.send(bytes, reply);
    });
  };
  await sendToAll('SCRIPT', 'LOAD', RELEASE);
  return {
    async acquire(key, ttl) {
      const token = newToken();
      await sendToAll('SET', key, token, 'PX', String(ttl), 'NX');
      return () => sendToAll('EVALSHA', sha, '1', key, token);
    },
    close: async () => connections.forEach((connection) => connection.close()),
  };
}

/** The parts must be ASCII, so that lengths in characters are lengths in bytes. */
function encode(parts) {
  let text = `*${parts.length}\r\n`;
  for (const part of parts) text += `$${part.length}\r\n${part}\r\n`;
  return text;
}
