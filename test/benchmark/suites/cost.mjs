import { checksOf, PROMISED } from '../cost/checks.mjs';
import { commandsPerLock } from '../cost/commands.mjs';
import { before, contendersFor } from '../cost/contenders.mjs';
import { printCommands, printThroughput } from '../cost/print.mjs';
import { joined, throughput } from '../cost/throughput.mjs';
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
  comparison: [16, PROMISED, 256].map((concurrency) => ({ concurrency, duration: 100, rounds: 11, warmUps: 2 })),
};
/**
 * Two processes of the same build differ by a tenth for as long as they live, depending on what their compilers saw first,
 * and what is asked is whether two builds differ by 3 %.
 */
const CREWS_OF_COMPARISON = 9;

/** Measures the cost of an uncontended lock: CPU of the client and of the servers, locks per second, and commands. */
export async function run({ quick, masters = quick ? [1, 5] : [1, 3, 5], only }) {
  const isComparison = before.length > 0 && !quick;
  const scenes = quick ? LENGTHS.quick : isComparison ? LENGTHS.comparison : LENGTHS.usual;
  const figures = [];
  for (const count of masters) {
    const field = { masters: count, contenders: contendersFor(count, only), ttl: TTL };
    const crews = [];
    while (crews.length < (isComparison ? CREWS_OF_COMPARISON : 1)) {
      crews.push(await onField(field, (bench) => measure(bench, { quick, scenes })));
    }
    const [{ commands }] = crews;
    const throughput = scenes.map((_, i) => joined(crews.map((crew) => crew.throughput[i])));
    for (const scene of throughput) printThroughput(count, scene);
    printCommands(count, commands);
    figures.push({ masters: count, throughput, commands });
  }
  return { figures, checks: figures.flatMap(checksOf) };
}

async function measure(field, { quick, scenes }) {
  const load = await ServerLoad.watch(field.urls);
  try {
    await warmUp(field, { quick });
    const found = [];
    for (const scene of scenes) found.push(await throughput({ ...field, load }, scene));
    return { throughput: found, commands: await commandsPerLock(field) };
  } finally {
    load.close();
  }
}
