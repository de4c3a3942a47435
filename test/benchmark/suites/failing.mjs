import { FEW, librariesFor, OURS } from '../cost/contenders.mjs';
import { checksOf } from '../failing/checks.mjs';
import { printMemory, printScene } from '../failing/print.mjs';
import { dead, hung, longHung, SLOW, slow } from '../failing/scenes.mjs';
import { onField } from '../measure/field.mjs';

const TTL = 3_000;
const MASTERS = 5;

const LENGTHS = {
  usual: { duration: 600, rounds: 3, long: { [OURS]: 60_000, other: 3_000 } },
  quick: { duration: 400, rounds: 2, long: { [OURS]: 12_000, other: 2_000 } },
};

/** Measures how failing masters affect latency, throughput and memory. Each contender has servers of its own. */
export async function run({ quick, only = quick ? FEW : undefined }) {
  const { long, ...lengths } = quick ? LENGTHS.quick : LENGTHS.usual;
  const contenders = librariesFor(MASTERS, only);
  const found = { longHung: {} };
  const scenes = [
    ['slow', `One of five slower by ${SLOW} ms`, slow],
    ['hung', 'One hung of five', hung],
    ['oneDead', 'One dead of five', (field, name) => dead(field, name, { ...lengths, count: 1 })],
    ['twoDead', 'Two dead of five', (field, name) => dead(field, name, { ...lengths, count: 2 })],
  ];
  for (const [key, title, scene] of scenes) {
    found[key] = {};
    const proxied = scene === slow ? 1 : 0;
    for (const name of contenders) {
      found[key][name] = await alone(name, (field) => scene(field, name, lengths), proxied);
    }
    printScene(`${title}, 8 at a time`, found[key]);
  }
  for (const name of contenders) {
    const duration = long[name] ?? long.other;
    const sampled = Array.from({ length: 11 }, (_, i) => ((i + 1) * duration) / 12);
    found.longHung[name] = await alone(name, (field) => longHung(field, name, { duration, sampled }));
  }
  printMemory('One hung of five for long, 8 at a time', found.longHung);
  return { figures: found, checks: checksOf(found) };
}

/** Keeps the other libraries measurable, whatever one library does when masters fail. */
function alone(name, scene, proxied = 0) {
  const field = { masters: MASTERS, contenders: [name], ttl: TTL, proxied };
  return onField(field, scene).catch((error) => ({ gaveUp: String(error.message).slice(0, 80) }));
}
