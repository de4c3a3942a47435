// Compiles like `npm test` does, with the text of one file changed: what is on the disk stays as it is. The key of
// jest's cache is made of the changed text, so no mutant is ever read from the cache of another.
import { join } from 'node:path';
import swc from '@swc/jest';
import { root } from '../../../scripts/run.mjs';

const mutant = process.env.MUTANT ? JSON.parse(process.env.MUTANT) : undefined;
const mutated = mutant && join(root, mutant.file);

export default {
  createTransformer(options) {
    const inner = swc.createTransformer(options);
    return {
      ...inner,
      process: (text, file, more) => inner.process(change(text, file), file, more),
      processAsync: (text, file, more) => inner.processAsync(change(text, file), file, more),
      getCacheKey: (text, file, more) => inner.getCacheKey(change(text, file), file, more),
    };
  },
};

function change(text, file) {
  if (file !== mutated) return text;
  return text.slice(0, mutant.start) + mutant.text + text.slice(mutant.end);
}
