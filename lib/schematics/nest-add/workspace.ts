import { posix } from 'node:path';

// What the schematic uses of @angular-devkit/schematics, which is there only in the process of a command line. These
// types keep the package free of a dependency on it.

export interface Tree {
  exists(path: string): boolean;
  readText(path: string): string;
  create(path: string, content: string): void;
  overwrite(path: string, content: string): void;
  getDir(path: string): Directory;
}

export interface Directory {
  readonly path: string;
  readonly subdirs: readonly string[];
  readonly subfiles: readonly string[];
  dir(name: string): Directory;
}

export interface SchematicContext {
  readonly logger: { info(message: string): void; warn(message: string): void };
  addTask(task: { toConfiguration(): { name: string; options: object } }): unknown;
}

// As in `schema.json`.
export interface NestAddOptions {
  readonly project?: string;
  readonly sourceRoot?: string;
  readonly skipCompose?: boolean;
  readonly skipSpec?: boolean;
  readonly skipInstall?: boolean;
}

const PATH = 'package.json';
// For an application in which ioredis is not installed yet.
const IOREDIS_RANGE = '^6.0.0';

type Group = 'dependencies' | 'devDependencies' | 'optionalDependencies' | 'peerDependencies';
type Manifest = { readonly name?: string } & { [group in Group]?: Record<string, string> };

export function readManifest(tree: Tree): Manifest {
  return tree.exists(PATH) ? (JSON.parse(tree.readText(PATH)) as Manifest) : {};
}

export function declares({ dependencies, devDependencies }: Manifest, name: string): boolean {
  return Object.hasOwn({ ...dependencies, ...devDependencies }, name);
}

// Gives the range that was added. npm installs a peer dependency even if the application does not declare it, so its
// absence shows only with another package manager.
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

// What `npm install ioredis` would write for the version that another package has brought along.
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

export interface Project {
  readonly sourceRoot: string;
  // The file that creates the application.
  readonly entry: string;
}

interface NestConfiguration {
  readonly sourceRoot?: string;
  readonly entryFile?: string;
  readonly projects?: Readonly<Record<string, NestConfiguration>>;
}

const CONFIGURATION_FILES = ['nest-cli.json', '.nest-cli.json'];

export function projectOf(tree: Tree, { project, sourceRoot }: NestAddOptions): Project {
  const file = CONFIGURATION_FILES.find((name) => tree.exists(name));
  const configuration = file === undefined ? {} : (JSON.parse(tree.readText(file)) as NestConfiguration);
  const projects = configuration.projects ?? {};
  if (project !== undefined && !Object.hasOwn(projects, project)) {
    const names = Object.keys(projects).join(', ') || 'none';
    throw new Error(`There is no project "${project}" in ${file ?? 'nest-cli.json'}; there are: ${names}.`);
  }
  // Without --project, the command line of Nest asks for one and passes only its sources.
  const own =
    project === undefined
      ? Object.values(projects).find((each) => each.sourceRoot !== undefined && each.sourceRoot === sourceRoot)
      : projects[project];
  const folder = posix.normalize(own?.sourceRoot ?? sourceRoot ?? configuration.sourceRoot ?? 'src');
  const entry = (own?.entryFile ?? configuration.entryFile ?? 'main').replace(/\.[jt]s$/, '');
  return { sourceRoot: folder, entry: posix.join(folder, `${entry}.ts`) };
}
