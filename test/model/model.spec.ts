// The small configurations, and the counter-examples that the search finds within seconds. `npm run model` explores
// all.
import { describe, expect, it } from '@jest/globals';
import { explore } from './checker.js';
import { sections } from './configurations.js';

const all = sections.flatMap(({ title, holds, breaks }) => [
  ...holds.map((one) => ({ title, ...one, breaks: false })),
  ...breaks.map((one) => ({ title, ...one, breaks: true })),
]);
const quick = all.filter((one) => one.quick);

describe('Models', () => {
  it.each(quick.filter((one) => !one.breaks))('keep their promises: $title: $name', ({ model }) => {
    const { violation, bounded } = explore(model());
    expect({ violation, bounded }).toEqual({ violation: undefined, bounded: false });
  });

  it.each(quick.filter((one) => one.breaks))('break a promise without the rule: $title: $name', ({ model }) => {
    expect(explore(model()).violation).toBeDefined();
  });
});
