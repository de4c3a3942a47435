import { posix } from 'node:path';
import type { Directory, Tree } from './host.js';
import { IMPORT } from './templates.js';

/** Source files, without declarations and tests. */
const SOURCE = /(?<![.-]spec|\.d)\.[cm]?ts$/;
const IS_IMPORTED = new RegExp(`['"]${IMPORT.from}['"]`);
const IS_REGISTERED = new RegExp(`\\b${IMPORT.name}\\s*\\.\\s*forRoot`);

/** The path of a file below this folder that registers the module, except in tests. */
export function findRegistration(tree: Tree, folder: Directory): string | undefined {
  for (const name of folder.subfiles.filter((each) => SOURCE.test(each))) {
    const path = posix.join(folder.path, name);
    const text = tree.readText(path);
    if (IS_IMPORTED.test(text) && IS_REGISTERED.test(text)) return path.replace(/^\//, '');
  }
  for (const name of folder.subdirs) {
    const found = name === 'node_modules' ? undefined : findRegistration(tree, folder.dir(name));
    if (found !== undefined) return found;
  }
  return undefined;
}
