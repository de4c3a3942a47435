// One proxy per port that its parent names. Each delays both directions by half of what the parent says.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { DelayLine } from './delay-line.mjs';

const line = new DelayLine();

async function open(target) {
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: '127.0.0.1', port: target, noDelay: true });
    forward(client, upstream);
    forward(upstream, client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

function forward(from, to) {
  from.on('data', (chunk) => line.push(() => to.write(chunk)));
  from.on('error', () => {});
  from.once('close', () => line.push(() => to.destroy()));
}

const ports = await Promise.all(process.argv.slice(2).map((port) => open(Number(port))));
process.on('message', (roundTrip) => {
  line.delay = roundTrip / 2;
  process.send('set');
});
process.on('disconnect', () => process.exit());
process.send(ports);
