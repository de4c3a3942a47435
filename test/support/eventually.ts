/** Polls until the condition holds. For conditions that no event announces. */
export async function eventually(condition: () => boolean | Promise<boolean>, within = 15_000): Promise<void> {
  const start = performance.now();
  while (!(await condition())) {
    const waited = performance.now() - start;
    if (waited > within) throw new Error(`Not within ${within} ms: ${String(condition)}`);
    // Seldom after a while: what takes long needs the processor itself.
    await new Promise((resolve) => setTimeout(resolve, waited < 200 ? 2 : 10));
  }
}
