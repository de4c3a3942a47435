import type { Tree } from './host.js';

const PATH = 'package.json';
/** The range for an application in which ioredis is not installed yet. */
export const IOREDIS_RANGE = '^6.0.0';

type Group = 'dependencies' | 'devDependencies' | 'optionalDependencies' | 'peerDependencies';
type Manifest = { readonly name?: string } & { [group in Group]?: Record<string, string> };

export function readManifest(tree: Tree): Manifest {
  return tree.exists(PATH) ? (JSON.parse(tree.readText(PATH)) as Manifest) : {};
}

/** Whether the application declares a package, for production or for development. */
export function declares({ dependencies, devDependencies }: Manifest, name: string): boolean {
  return Object.hasOwn({ ...dependencies, ...devDependencies }, name);
}

/**
 * Adds ioredis to the dependencies, and gives its range; `undefined` if it is there. npm installs a peer dependency
 * even if the application does not declare it, so its absence shows only with another package manager.
 */
export function addIoredis(tree: Tree): string | undefined {
  const manifest = readManifest(tree);
  const { dependencies, devDependencies, optionalDependencies, peerDependencies } = manifest;
  const present = { ...optionalDependencies, ...peerDependencies, ...dependencies };
  if (!tree.exists(PATH) || present.ioredis !== undefined) return undefined;
  const range = devDependencies?.ioredis ?? installedRange(tree) ?? IOREDIS_RANGE;
  const changed = { ...manifest, dependencies: sorted({ ...dependencies, ioredis: range }) };
  if (devDependencies?.ioredis !== undefined) {
    const { ioredis: _, ...others } = devDependencies;
    changed.devDependencies = others;
  }
  write(tree, changed);
  return range;
}

/** What `npm install ioredis` would write for the version that another package has brought along. */
function installedRange(tree: Tree): string | undefined {
  const path = 'node_modules/ioredis/package.json';
  if (!tree.exists(path)) return undefined;
  const { version } = JSON.parse(tree.readText(path)) as { version: string };
  return /^[56]\./.test(version) ? `^${version}` : undefined;
}

function write(tree: Tree, manifest: Manifest): void {
  const text = tree.readText(PATH);
  const indentation = /^[ \t]+(?=")/m.exec(text)?.[0] ?? '  ';
  const end = /\r?\n$/.exec(text)?.[0] ?? '';
  const content = JSON.stringify(manifest, undefined, indentation);
  tree.overwrite(PATH, (end.startsWith('\r') ? content.replaceAll('\n', '\r\n') : content) + end);
}

function sorted(record: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
