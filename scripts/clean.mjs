// Removes old output: otherwise the output of a deleted source file would be published.
import { rmSync } from 'node:fs';

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });
