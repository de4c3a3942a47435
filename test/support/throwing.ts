/** A function that throws. */
export function throwing(error: unknown): () => never {
  return () => {
    throw error;
  };
}
