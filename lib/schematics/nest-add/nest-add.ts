import { findRegistration, findRootModule, findTypeScript, isRegistration, registerIn } from './edit-module.js';
import {
  addIoredis,
  type SchematicContext,
  declares,
  type NestAddOptions,
  type Project,
  projectOf,
  readManifest,
  type Tree,
} from './workspace.js';
import { composeFile, exampleSpec, IMPORT, registration } from './templates.js';

const COMPOSE_FILE = 'docker-compose.redlock.yml';
const DOCUMENTATION = 'node_modules/nestjs-redlock/docs/testing.md';

// Prepares an application for its first lock. A second run changes nothing.
export function nestAdd(options: NestAddOptions) {
  return (tree: Tree, context: SchematicContext): void => {
    const project = projectOf(tree, options);
    const isRegistered = register(tree, context, project);
    addDependency(tree, context, options);
    if (!options.skipCompose) {
      const content = composeFile(readManifest(tree).name ?? 'app');
      if (createFile(tree, context, COMPOSE_FILE, content))
        context.logger.info(`Three masters for development: docker compose -f ${COMPOSE_FILE} up -d`);
    }
    if (!options.skipSpec) addSpec(tree, context, project);
    if (isRegistered) {
      context.logger.info('The variable REDLOCK_MASTERS names other masters, with commas between their URLs.');
      context.logger.info(
        'Tests that start the whole application need masters from now on, or locks in memory: ' +
          `imports: [AppModule, RedlockTestingModule.forRoot()], see ${DOCUMENTATION}`,
      );
    }
  };
}

// Gives whether the root module has been changed.
function register(tree: Tree, { logger }: SchematicContext, project: Project): boolean {
  const typescript = findTypeScript(process.cwd());
  const module = typescript && findRootModule(typescript, tree, project);
  // The root module may be outside the folder of sources.
  const isPresent = module && isRegistration(tree.readText(module.path));
  const present = isPresent ? module.path : findRegistration(tree, tree.getDir(project.sourceRoot));
  if (present !== undefined) {
    logger.info(`${present} registers ${IMPORT.name} already: no module is changed.`);
    return false;
  }
  const edit = module
    ? registerIn(typescript, tree.readText(module.path), module.className)
    : {
        unusual: typescript
          ? `${project.entry} does not pass it to NestFactory by name`
          : 'no TypeScript up to version 6 is installed',
      };
  if (module && 'text' in edit) {
    tree.overwrite(module.path, edit.text);
    return true;
  }
  const place = module ? `${module.path} is not changed` : 'The root module is not found';
  logger.warn(`${place}: ${'unusual' in edit ? edit.unusual : ''}. Please add this by hand:\n\n${byHand()}\n`);
  return false;
}

function byHand(): string {
  const call = registration("'", '  ').join('\n    ');
  return `import { ${IMPORT.name} } from '${IMPORT.from}';

@Module({
  imports: [
    ${call},
  ],
})`;
}

function addDependency(tree: Tree, context: SchematicContext, { skipInstall }: NestAddOptions): void {
  const range = addIoredis(tree);
  if (range === undefined) return;
  context.logger.info(`package.json now has ioredis ${range} among its dependencies: nestjs-redlock needs it.`);
  if (skipInstall) return;
  // The name and the options of NodePackageInstallTask.
  const configuration = { name: 'node-package', options: { command: 'install', quiet: true, hideOutput: true } };
  context.addTask({ toConfiguration: () => configuration });
}

function addSpec(tree: Tree, context: SchematicContext, { sourceRoot }: Project): void {
  const manifest = readManifest(tree);
  const missing = [['@nestjs/testing'], ['jest', 'vitest']].filter(
    (names) => !names.some((n) => declares(manifest, n)),
  );
  if (missing.length === 0) return void createFile(tree, context, `${sourceRoot}/redlock.spec.ts`, exampleSpec());
  const names = missing.map((each) => each.join(' or ')).join(', ');
  context.logger.info(`No example of a test is written, because package.json does not name ${names}.`);
}

// Gives whether the file has been written: it is left alone if it exists.
function createFile(tree: Tree, { logger }: SchematicContext, path: string, content: string): boolean {
  if (!tree.exists(path)) {
    tree.create(path, content);
    return true;
  }
  if (tree.readText(path) === content) logger.info(`${path} exists already: it is not changed.`);
  else
    logger.warn(
      `${path} exists with other content: it is not changed. To get the new one, rename it and run this again.`,
    );
  return false;
}
