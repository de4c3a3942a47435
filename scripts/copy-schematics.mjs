// Copies what the schematics engine reads beside the compiled code: the compiler leaves out what is not TypeScript.
import { cpSync, statSync } from 'node:fs';

const isCopied = (path) => path.endsWith('.json') || statSync(path).isDirectory();

cpSync(new URL('../lib/schematics', import.meta.url), new URL('../dist/cjs/schematics', import.meta.url), {
  recursive: true,
  filter: isCopied,
});
