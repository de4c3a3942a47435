import { afterEach } from '@jest/globals';
import { Gate } from './gate.js';

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Closes after the test what it has started, the latest first. */
export function closeLater(close: () => unknown): void {
  closers.push(close);
}

/** Starts two instances of an application whose work passes a gate. */
export async function twoInstances<Instance>(start: (gate: Gate) => Promise<Instance>) {
  const gate = new Gate();
  const [first, second] = [await start(gate), await start(gate)];
  // A failed test must not keep its application from closing.
  closeLater(() => gate.stayOpen());
  return { gate, first, second };
}
