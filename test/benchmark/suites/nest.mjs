import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { FEW, FLOOR, librariesFor } from '../cost/contenders.mjs';
import { checksOf } from '../nest/checks.mjs';
import { decoratorOverhead } from '../nest/decorator.mjs';
import { firstLock } from '../nest/first-lock.mjs';
import { packageSizes } from '../nest/package-size.mjs';
import { printDecorator, printFirstLock, printSizes } from '../nest/print.mjs';

const LENGTHS = {
  usual: { rounds: 40, calls: 2_000, starts: 5 },
  quick: { rounds: 16, calls: 1_000, starts: 2 },
};

/** Measures what the library adds to an application: to a call, to its start, to its dependencies. */
export async function run({ quick, only = quick ? FEW : undefined }) {
  const { starts, ...lengths } = quick ? LENGTHS.quick : LENGTHS.usual;
  const found = {};
  found.memory = await decoratorOverhead('memory', lengths);
  printDecorator('a master in memory', found.memory);
  const server = await RedisServer.start();
  try {
    found.master = await decoratorOverhead([server.url], lengths);
    printDecorator('one master', found.master);
    found.start = await firstLock(server.url, [FLOOR, 'floor-nest', ...librariesFor(1, only)], { rounds: starts });
  } finally {
    await server.stop();
  }
  printFirstLock(found.start);
  found.packages = await packageSizes();
  printSizes(found.packages);
  return { figures: found, checks: checksOf(found) };
}
