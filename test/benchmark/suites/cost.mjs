import { checksOf, PROMISED } from '../cost/checks.mjs';
import { commandsPerLock } from '../cost/commands.mjs';
import { before, contendersFor } from '../cost/contenders.mjs';
import { printCommands, printThroughput } from '../cost/print.mjs';
import { throughput } from '../cost/throughput.mjs';
import { onField } from '../measure/field.mjs';
import { ServerLoad } from '../measure/server-load.mjs';
import { warmUp } from '../measure/warm-up.mjs';

/** Longer than any pause of a busy machine. Masters that have just started also wait this long before they vote. */
const TTL = 3_000;

const LENGTHS = {
  usual: [
    { concurrency: 16, duration: 250, rounds: 3, warmUps: 1 },
    { concurrency: PROMISED, duration: 250, rounds: 7, warmUps: 1 },
    { concurrency: 256, duration: 250, rounds: 3, warmUps: 1 },
  ],
  quick: [{ concurrency: PROMISED, duration: 160, rounds: 5, warmUps: 1 }],
  // Two rounds of the same build differ by a fifth, and what is asked is whether two builds differ by 3 %.
  comparison: [16, PROMISED, 256].map((concurrency) => ({ concurrency, duration: 100, rounds: 101, warmUps: 3 })),
};

/** Measures the cost of an uncontended lock: CPU of the client and of the servers, locks per second, and commands. */
export async function run({ quick, masters = quick ? [1, 5] : [1, 3, 5], only }) {
  const scenes = quick ? LENGTHS.quick : before.length > 0 ? LENGTHS.comparison : LENGTHS.usual;
  const figures = [];
  for (const count of masters) {
    const contenders = contendersFor(count, only);
    figures.push(await onField({ masters: count, contenders, ttl: TTL }, (field) => measure(field, { quick, scenes })));
  }
  return { figures, checks: figures.flatMap(checksOf) };
}

async function measure(field, { quick, scenes }) {
  const masters = field.urls.length;
  const load = await ServerLoad.watch(field.urls);
  try {
    await warmUp(field, { quick });
    const found = { masters, throughput: [] };
    for (const scene of scenes) {
      found.throughput.push(await throughput({ ...field, load }, scene));
      printThroughput(masters, found.throughput.at(-1));
    }
    found.commands = await commandsPerLock(field);
    printCommands(masters, found.commands);
    return found;
  } finally {
    load.close();
  }
}
