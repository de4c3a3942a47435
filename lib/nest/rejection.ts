/** Turns what is thrown into a rejection. An async function would do the same for one more promise in each call. */
export function rejectOnThrow<T>(run: () => Promise<T>): Promise<T> {
  try {
    return run();
  } catch (error) {
    return Promise.reject(error);
  }
}
