/** Polls until the condition holds. For conditions that no event announces. */
export async function eventually(condition: () => boolean | Promise<boolean>, within = 15_000): Promise<void> {
  const start = performance.now();
  while (!(await condition())) {
    if (performance.now() - start > within) throw new Error(`Not within ${within} ms: ${String(condition)}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
