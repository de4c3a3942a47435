import { expect, it } from '@jest/globals';
import { farWaiter } from './far-waiter.js';
import { play } from './run.js';

// Protocol 5.4
it.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'A waiter is passed by a bounded number of later calls, whatever its round trip (seed %i)',
  async (seed) => {
    const { property, message } = await play(farWaiter(seed));
    expect({ property, message }).toEqual({ property: undefined, message: undefined });
  },
);
