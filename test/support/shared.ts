import { afterAll, beforeAll } from '@jest/globals';

/** What all tests of a file or a `describe` use: made before the first of them, and disposed of after the last. */
export function shared<T extends AsyncDisposable>(make: () => Promise<T>): () => T {
  let made: T;
  beforeAll(async () => {
    made = await make();
  }, 60_000);
  afterAll(async () => {
    await made[Symbol.asyncDispose]();
  });
  return () => made;
}
