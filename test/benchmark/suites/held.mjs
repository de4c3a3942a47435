import { FEW, librariesFor, OURS } from '../cost/contenders.mjs';
import { checksOf } from '../held/checks.mjs';
import { holdMany } from '../held/many.mjs';
import { printAcrossKeys, printBesideHeld, printMany } from '../held/print.mjs';
import { acrossKeys, besideHeld } from '../held/scale.mjs';
import { onField } from '../measure/field.mjs';

/** Contenders that do not extend held locks. */
const WITHOUT_EXTENSION = ['redlock4', 'murlock'];

const LENGTHS = {
  usual: {
    many: { masters: 5, ttl: 10_000, count: 10_000 },
    // A ttl of 10 s would need more than one processor for the masters: each lock is extended three times within it.
    most: { masters: 3, ttl: 60_000, count: 100_000 },
    scale: { masters: 3, ttl: 60_000, duration: 300, rounds: 5 },
    warmUp: 3_000,
    heights: [1, 1_000, 10_000, 100_000],
    spaces: [10, 1_000, 100_000, 1_000_000],
    limit: 30_000,
  },
  quick: {
    many: { masters: 3, ttl: 3_000, count: 2_000 },
    most: { masters: 3, ttl: 12_000, count: 20_000 },
    scale: { masters: 3, ttl: 12_000, duration: 200, rounds: 3 },
    warmUp: 1_000,
    heights: [1, 1_000, 10_000],
    spaces: [10, 1_000, 20_000],
    limit: 2_000,
  },
};

/** Measures the cost of holding many locks, and whether a lock costs more beside many others, or among many keys. */
export async function run({ quick, only = quick ? FEW : undefined }) {
  const { many, most, scale, ...lengths } = quick ? LENGTHS.quick : LENGTHS.usual;
  const contenders = librariesFor(many.masters, only).filter((name) => !WITHOUT_EXTENSION.includes(name));
  const found = { many: {} };
  const manyDone = onField({ ...many, contenders }, async (field) => {
    for (const name of contenders) found.many[name] = await holdMany(field, name, many).catch(gaveUp);
  });
  // The masters of what follows start now, so that they vote by the time they are needed.
  const mostDone = onField({ ...most, contenders: [OURS] }, async (field) => {
    await manyDone;
    found.most = await holdMany(field, OURS, most).catch(gaveUp);
    printMany([...Object.entries(found.many), [OURS, found.most]]);
  });
  const scaleDone = onField({ ...scale, contenders: lengths.heights.map((_, i) => `${OURS}@${i}`) }, async (field) => {
    await mostDone;
    const on = `ours, N = ${scale.masters}`;
    found.besideHeld = await besideHeld(field, { ...scale, ...lengths });
    printBesideHeld(`${on}: a lock beside others that are held`, found.besideHeld);
    found.acrossKeys = await acrossKeys(field, { ...scale, ...lengths });
    printAcrossKeys(`${on}: a lock among so many keys`, found.acrossKeys);
  });
  await Promise.all([manyDone, mostDone, scaleDone]);
  return { figures: found, checks: checksOf(found) };
}

/** Keeps the other contenders measurable. */
const gaveUp = (error) => ({ gaveUp: String(error.message) });
