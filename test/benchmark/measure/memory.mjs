/** Bytes that this process still uses after a collection: in the heap, and in buffers outside of it. */
export function heldInMemory() {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
