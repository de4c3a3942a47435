import type { Chance } from './engine/chance.js';
import type { InnerOperation, Operation } from './schedule.js';

/** All chains of a schedule take them in this order, or the other way round: they do not wait for each other in a circle. */
const ORDER = ['a', 'b', 'c'];
const SEVERAL = [
  ['a', 'b'],
  ['b', 'c'],
  ['a', 'c'],
  ['a', 'b', 'c'],
];

/** Adds calls whose work asks for more, and calls for several resources in between, most of them in one process. */
export function nestingFor(chance: Chance, ttl: number, operations: readonly Operation[]): readonly Operation[] {
  const first = chance.pick(operations);
  const processes = operations.map(({ process }) => process);
  const shared = chance.pick([0, 0, 0.3]);
  const pace = chance.pick([1, 1, 10]);
  const order = chance.happens(0.3) ? [...ORDER].reverse() : ORDER;
  const call = () => ({
    ...{ ttl, wait: chance.pick([300, 2_000, 5_000]), extend: true, minHold: 0, tokenAt: undefined, newTtl: undefined },
    ...{ abortAfter: chance.happens(0.1) ? chance.whole(1, 600) : undefined },
    ...(chance.happens(shared) && { mode: 'shared' as const }),
  });
  const when = () => ({
    at: first.at + chance.whole(0, 60),
    process: chance.happens(0.8) ? first.process : chance.pick(processes),
  });
  const inner = (from: number): InnerOperation | undefined => {
    const left = order.slice(from);
    if (left.length === 0) return undefined;
    const isPair = left.length > 1 && chance.happens(0.2);
    const next = chance.whole(0, left.length - 1);
    const resources = isPair ? left : [left[next] as string];
    const deeper = isPair || chance.happens(0.5) ? undefined : inner(from + next + 1);
    const after = pace * chance.whole(1, 60);
    return { ...call(), resources, after, work: after + pace * chance.whole(0, 100), ...(deeper && { inner: deeper }) };
  };
  const chains = Array.from({ length: chance.whole(1, 4) }, (): Operation => {
    const [index, after] = [chance.whole(0, 1), pace * chance.whole(1, 60)];
    const nested = inner(index + 1);
    const work = after + pace * chance.whole(0, 100);
    return { ...call(), ...when(), resources: [order[index] as string], work, ...(nested && { inner: nested }) };
  });
  const others = Array.from({ length: chance.whole(1, 4) }, (): Operation => {
    const resources = chance.happens(0.7) ? chance.pick(SEVERAL) : [chance.pick(ORDER)];
    return { ...call(), ...when(), resources: [...resources], work: chance.whole(0, 60) };
  });
  return [...operations, ...chains, ...others];
}
