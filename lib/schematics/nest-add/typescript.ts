import { createRequire } from 'node:module';
import { join } from 'node:path';
import type ts from 'typescript';

export type TypeScript = typeof ts;

/**
 * The compiler of the application in this folder, or that of its command line. `undefined` if there is none with an
 * API to parse files: TypeScript 7 has no such API.
 */
export function findTypeScript(folder: string): TypeScript | undefined {
  const application = createRequire(join(folder, 'package.json'));
  const found = load(application);
  if (found) return found;
  try {
    return load(createRequire(application.resolve('@nestjs/cli/package.json')));
  } catch {
    return undefined;
  }
}

function load(require: NodeJS.Require): TypeScript | undefined {
  try {
    const found = require('typescript') as Partial<TypeScript>;
    return typeof found.createSourceFile === 'function' ? found : undefined;
  } catch {
    return undefined;
  }
}
