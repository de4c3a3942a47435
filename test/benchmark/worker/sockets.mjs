import { subscribe } from 'node:diagnostics_channel';
import { sleep } from '../measure/figures.mjs';

const REQUEST = /(?:^|\r\n)\*\d+\r\n\$\d+\r\n(?<name>\w+)/g;
/** What clients send when they connect or idle. */
const NOT_OF_LOCKS = new Set(['client', 'hello', 'info', 'ping', 'subscribe']);

/** Milliseconds without a reply after which none is on its way, also over a slow network, and the limit for the wait. */
const QUIET = { for: 80, within: 2_000 };

const sockets = new Set();

subscribe('net.client.socket', ({ socket }) => sockets.add(socket));

/**
 * Counts the bytes that this process sends and receives over all its connections while `work` runs, and then until
 * replies that `work` did not wait for have arrived.
 */
export async function trafficDuring(work) {
  const before = traffic();
  const result = await work();
  let after = traffic();
  const end = performance.now() + QUIET.within;
  for (let last; last !== after.received && performance.now() < end; after = traffic()) {
    last = after.received;
    await sleep(QUIET.for);
  }
  return { ...result, sent: after.sent - before.sent, received: after.received - before.received };
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
  try {
    return { ...(await work()), requests };
  } finally {
    // Uncovers the method of the class.
    for (const socket of observed) delete socket.write;
  }
}

function traffic() {
  let [sent, received] = [0, 0];
  for (const socket of sockets) {
    sent += socket.bytesWritten;
    received += socket.bytesRead;
  }
  return { sent, received };
}
