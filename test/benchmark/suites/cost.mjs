import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { checksOf, PROMISED } from '../cost/checks.mjs';
import { commandsPerLock } from '../cost/commands.mjs';
import { contendersFor } from '../cost/contenders.mjs';
import { printCommands, printThroughput } from '../cost/print.mjs';
import { throughput } from '../cost/throughput.mjs';
import { ServerLoad } from '../measure/server-load.mjs';
import { Crew } from '../worker/crew.mjs';

/** Longer than any pause of a busy machine; it is also how long masters that were just started wait to vote. */
const TTL = 3_000;

const LENGTHS = {
  usual: { concurrencies: [16, PROMISED, 256], duration: 300, rounds: 7, warmUps: 2 },
  quick: { concurrencies: [PROMISED], duration: 250, rounds: 5, warmUps: 2 },
};

/** What a lock costs that nobody else wants: CPU of the client and of the servers, locks per second, commands. */
export async function run({ quick, masters = [1, 3, 5], only }) {
  const { concurrencies, ...lengths } = quick ? LENGTHS.quick : LENGTHS.usual;
  const figures = [];
  for (const count of masters) {
    const servers = await Promise.all(Array.from({ length: count }, () => RedisServer.start()));
    const urls = servers.map(({ url }) => url);
    const load = await ServerLoad.watch(urls);
    let crew;
    try {
      crew = await Crew.connect(contendersFor(count, only), urls, { ttl: TTL });
      const bench = { crew, urls, load, ttl: TTL };
      const found = { masters: count, commands: {}, throughput: [] };
      for (const concurrency of concurrencies) {
        found.throughput.push(await throughput(bench, { concurrency, ...lengths }));
        printThroughput(count, found.throughput.at(-1));
      }
      found.commands = await commandsPerLock(bench);
      printCommands(count, found.commands);
      figures.push(found);
    } finally {
      crew?.end();
      load.close();
      await Promise.all(servers.map((server) => server.stop()));
    }
  }
  return { figures, checks: figures.flatMap(checksOf) };
}
