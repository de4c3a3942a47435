import { posix } from 'node:path';
import type { NestAddOptions, Tree } from './host.js';

/** One application of the workspace. */
export interface Project {
  readonly sourceRoot: string;
  /** Path of the file that creates the application. */
  readonly entry: string;
}

interface NestConfiguration {
  readonly sourceRoot?: string;
  readonly entryFile?: string;
  readonly projects?: Readonly<Record<string, NestConfiguration>>;
}

const CONFIGURATION_FILES = ['nest-cli.json', '.nest-cli.json'];

/**
 * The project that the options name, or the default one.
 *
 * @throws {Error} if there is no such project
 */
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
