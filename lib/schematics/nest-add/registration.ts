import { posix } from 'node:path';
import type { Directory, Tree } from './host.js';
import { IMPORT } from './templates.js';

/** Source files, without declarations and tests. */
const SOURCE = /(?<![.-]spec|\.d)\.[cm]?ts$/;
const IS_IMPORTED = new RegExp(`['"]${IMPORT.from}['"]`);
const ALIAS = new RegExp(`\\b${IMPORT.name}\\s+as\\s+(\\w+)`);

/** Whether a source file registers the module, also under another name. */
export function isRegistration(text: string): boolean {
  const name = ALIAS.exec(text)?.[1] ?? IMPORT.name;
  return IS_IMPORTED.test(text) && new RegExp(`\\b${name}\\s*\\.\\s*forRoot`).test(text);
}

/** The path of a file below this folder that registers the module, except in tests. */
export function findRegistration(tree: Tree, folder: Directory): string | undefined {
  for (const name of folder.subfiles.filter((each) => SOURCE.test(each))) {
    const path = posix.join(folder.path, name);
    if (isRegistration(tree.readText(path))) return path.replace(/^\//, '');
  }
  for (const name of folder.subdirs) {
    const found = name === 'node_modules' ? undefined : findRegistration(tree, folder.dir(name));
    if (found !== undefined) return found;
  }
  return undefined;
}
