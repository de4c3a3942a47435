import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { FEW, FLOOR, librariesFor } from '../cost/contenders.mjs';
import { decoratorOverhead } from '../nest/decorator.mjs';
import { firstLock } from '../nest/first-lock.mjs';
import { packageSizes } from '../nest/package-size.mjs';
import { printDecorator, printFirstLock, printSizes } from '../nest/print.mjs';
import { noMore } from '../promises.mjs';

const LENGTHS = {
  usual: { pairs: 80, calls: 500, rounds: 5 },
  quick: { pairs: 40, calls: 250, rounds: 2 },
};

/** Measures what the library adds to an application: to a call, to its start, to its dependencies. */
export async function run({ quick, only = quick ? FEW : undefined }) {
  const lengths = quick ? LENGTHS.quick : LENGTHS.usual;
  const decorator = await decoratorOverhead(lengths);
  printDecorator(decorator);
  const server = await RedisServer.start();
  let start;
  try {
    start = await firstLock(server.url, [FLOOR, 'floor-nest', ...librariesFor(1, only)], lengths);
  } finally {
    await server.stop();
  }
  printFirstLock(start);
  const packages = await packageSizes();
  printSizes(packages);
  const checks = [noMore('@WithLock adds at most 5 us to LockService.withLock', decorator.added.median, 'us', 5)];
  return { figures: { decorator, start, packages }, checks };
}
