import { subscribe } from 'node:diagnostics_channel';

const REQUEST = /(?:^|\r\n)\*\d+\r\n\$\d+\r\n(?<name>\w+)/g;
/** What clients send when they connect or idle. */
const NOT_OF_LOCKS = new Set(['client', 'hello', 'info', 'ping', 'subscribe']);

const sockets = new Set();

subscribe('net.client.socket', ({ socket }) => sockets.add(socket));

/** Bytes that this process has sent and received over all its connections since it started. */
export function traffic() {
  let [sent, received] = [0, 0];
  for (const socket of sockets) {
    sent += socket.bytesWritten;
    received += socket.bytesRead;
  }
  return { sent, received };
}

/**
 * Counts the commands that this process sends while `work` runs. It costs CPU, but of the client alone: MONITOR would
 * slow the servers down, so that a library under full load sends again what is still on its way.
 */
export async function requestsDuring(work) {
  let requests = 0;
  const observed = [...sockets];
  for (const socket of observed) {
    const { write } = socket;
    socket.write = (chunk, ...rest) => {
      const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('latin1');
      for (const { groups } of text.matchAll(REQUEST)) if (!NOT_OF_LOCKS.has(groups.name.toLowerCase())) requests += 1;
      return write.call(socket, chunk, ...rest);
    };
  }
  const result = await work();
  // Uncovers the method of the class.
  for (const socket of observed) delete socket.write;
  return { ...result, requests };
}
