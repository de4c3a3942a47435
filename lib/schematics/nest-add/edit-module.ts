import { createRequire } from 'node:module';
import { join, posix } from 'node:path';
import type ts from 'typescript';

// What the schematic uses of @angular-devkit/schematics, which is there only in the process of a command line. These
// types keep the package free of a dependency on it.

export interface Tree {
  exists(path: string): boolean;
  readText(path: string): string;
  create(path: string, content: string): void;
  overwrite(path: string, content: string): void;
  getDir(path: string): Directory;
}

interface Directory {
  readonly path: string;
  readonly subdirs: readonly string[];
  readonly subfiles: readonly string[];
  dir(name: string): Directory;
}

export interface SchematicContext {
  readonly logger: { info(message: string): void; warn(message: string): void };
  addTask(task: { toConfiguration(): { name: string; options: object } }): unknown;
}

export interface Project {
  readonly sourceRoot: string;
  // The file that creates the application.
  readonly entry: string;
  readonly keyPrefix: string;
}

const LOCAL_MASTERS = ['redis://127.0.0.1:6381', 'redis://127.0.0.1:6382', 'redis://127.0.0.1:6383'] as const;

const IMPORT = { name: 'RedlockModule', from: 'nestjs-redlock' } as const;

// The first line is without indentation.
function registration(keyPrefix: string, quote: string, unit: string): string[] {
  const quoted = (text: string) => `${quote}${text}${quote}`;
  return [
    `${IMPORT.name}.forRoot({`,
    `${unit}masters: process.env.REDLOCK_MASTERS?.split(${quoted(',')}) ?? [`,
    ...LOCAL_MASTERS.map((url) => `${unit.repeat(2)}${quoted(url)},`),
    `${unit}],`,
    `${unit}// Of this application alone: two that share it share their locks and jobs.`,
    `${unit}keyPrefix: ${quoted(keyPrefix)},`,
    `${unit}// In development, locks stop for two seconds if two masters restart.`,
    `${unit}ttl: process.env.REDLOCK_MASTERS ? ${quoted('10s')} : ${quoted('2s')},`,
    '})',
  ];
}

type TypeScript = typeof ts;

// Of the application in this folder, or of its command line. `undefined` if neither has an API to parse files:
// TypeScript 7 has none.
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

// Gives whether the root module has been changed.
export function register(tree: Tree, { logger }: SchematicContext, project: Project): boolean {
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
    ? registerIn(typescript, tree.readText(module.path), module.className, project.keyPrefix)
    : {
        unusual: typescript
          ? `${project.entry} does not pass it to NestFactory by name`
          : 'no TypeScript up to version 6 is installed',
      };
  if (module && 'text' in edit) {
    tree.overwrite(module.path, edit.text);
    return true;
  }
  const problem = module ? `${module.path} is not changed` : 'The root module is not found';
  logger.warn(`${problem}: ${'unusual' in edit ? edit.unusual : ''}. Please add this by hand:\n\n${byHand(project)}\n`);
  return false;
}

function byHand({ keyPrefix }: Project): string {
  const call = registration(keyPrefix, "'", '  ').join('\n    ');
  return `import { ${IMPORT.name} } from '${IMPORT.from}';

@Module({
  imports: [
    ${call},
  ],
})`;
}

function load(require: NodeJS.Require): TypeScript | undefined {
  try {
    const found = require('typescript') as Partial<TypeScript>;
    return typeof found.createSourceFile === 'function' ? found : undefined;
  } catch {
    return undefined;
  }
}

interface RootModule {
  readonly path: string;
  // `undefined` if the entry file does not show it.
  readonly className: string | undefined;
}

// The module that the entry file passes to `NestFactory`; otherwise `app.module.ts`, if it exists.
function findRootModule(typescript: TypeScript, tree: Tree, project: Project): RootModule | undefined {
  const { entry, sourceRoot } = project;
  const root = tree.exists(entry) ? rootOfEntry(typescript, tree, entry) : undefined;
  // An entry file that names another module, which is not found, must not lead to a module that it does not use.
  if (root) return root.module;
  const usual = posix.join(sourceRoot, 'app.module.ts');
  return tree.exists(usual) ? { path: usual, className: undefined } : undefined;
}

// `undefined` if the entry file names no module; its `module` is absent if the named one cannot be found.
function rootOfEntry(
  typescript: TypeScript,
  tree: Tree,
  entry: string,
): { module: RootModule | undefined } | undefined {
  const file = typescript.createSourceFile(entry, tree.readText(entry), typescript.ScriptTarget.Latest, true);
  const name = argumentOfFactory(typescript, file);
  return name === undefined ? undefined : { module: moduleOf(typescript, tree, file, name) };
}

function moduleOf(typescript: TypeScript, tree: Tree, file: ts.SourceFile, name: string): RootModule | undefined {
  const entry = file.fileName;
  for (const statement of file.statements) {
    if (!typescript.isImportDeclaration(statement)) continue;
    const bindings = statement.importClause?.namedBindings;
    if (!bindings || !typescript.isNamedImports(bindings)) continue;
    const specifier = bindings.elements.find((element) => element.name.text === name);
    if (!specifier) continue;
    const path = fileOf(tree, entry, (statement.moduleSpecifier as ts.StringLiteral).text);
    return path === undefined ? undefined : { path, className: (specifier.propertyName ?? specifier.name).text };
  }
  const isDeclaredHere = file.statements.some(
    (each) => typescript.isClassDeclaration(each) && each.name?.text === name,
  );
  return isDeclaredHere ? { path: entry, className: name } : undefined;
}

function argumentOfFactory(typescript: TypeScript, node: ts.Node): string | undefined {
  if (typescript.isCallExpression(node) && typescript.isPropertyAccessExpression(node.expression)) {
    const { expression: object, name } = node.expression;
    const [first] = node.arguments;
    const isFactory =
      typescript.isIdentifier(object) && object.text === 'NestFactory' && name.text.startsWith('create');
    if (isFactory && first && typescript.isIdentifier(first)) return first.text;
  }
  return typescript.forEachChild(node, (child) => argumentOfFactory(typescript, child));
}

function fileOf(tree: Tree, from: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const base = posix.join(posix.dirname(from), specifier.replace(/\.[jt]s$/, ''));
  return [`${base}.ts`, `${base}/index.ts`].find((path) => tree.exists(path));
}

// Without declarations and tests.
const SOURCE = /(?<![.-]spec|\.d)\.[cm]?ts$/;
const IS_IMPORTED = new RegExp(`['"]${IMPORT.from}['"]`);
const ALIAS = new RegExp(`\\b${IMPORT.name}\\s+as\\s+(\\w+)`);

// Also under another name.
function isRegistration(text: string): boolean {
  const name = ALIAS.exec(text)?.[1] ?? IMPORT.name;
  return IS_IMPORTED.test(text) && new RegExp(`\\b${name}\\s*\\.\\s*forRoot`).test(text);
}

function findRegistration(tree: Tree, folder: Directory): string | undefined {
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

interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

// Without the comments before the node.
function replace(node: ts.Node, text: string): Change {
  return { start: node.getStart(), end: node.end, text };
}

// Nothing but these parts: no comments, which a change would lose.
function isPlain(node: ts.Node, parts: readonly ts.Node[]): boolean {
  const bare = (text: string) => text.replaceAll(/[\s,[\]{}]/g, '');
  return bare(node.getText()) === bare(parts.map((part) => part.getText()).join(''));
}

// The changes do not overlap. The line endings of the file are kept.
function apply(text: string, changes: readonly Change[]): string {
  const isWindows = text.includes('\r\n');
  let changed = text;
  for (const change of changes.toSorted((a, b) => b.start - a.start)) {
    const inserted = isWindows ? change.text.replaceAll(/\r?\n/g, '\r\n') : change.text;
    changed = changed.slice(0, change.start) + inserted + changed.slice(change.end);
  }
  return changed;
}

function indentationAt(text: string, position: number): string {
  return /^[ \t]*/.exec(lineUpTo(text, position))?.[0] ?? '';
}

function isFirstOnLine(text: string, position: number): boolean {
  return lineUpTo(text, position).trim() === '';
}

function lineUpTo(text: string, position: number): string {
  return text.slice(text.lastIndexOf('\n', position - 1) + 1, position);
}

// `unusual` is why the text has to be changed by hand.
type Edit = { readonly text: string } | { readonly unusual: string };

interface Style {
  readonly quote: string;
  readonly unit: string;
  readonly semicolon: string;
}

// Not by `MetadataManager` of @nestjs/schematics: where `imports` is a variable, a spread or a computed name, it adds a
// second one that replaces it, and it imports only files of the application.
// Changes only what is certain to mean the same in every such file: a class with `@Module({ imports: [...] })`, or
// without `imports`. Without a `className`, that is the only class with `@Module` in the file.
export function registerIn(
  typescript: TypeScript,
  text: string,
  className: string | undefined,
  keyPrefix: string,
): Edit {
  const file = typescript.createSourceFile('module.ts', text, typescript.ScriptTarget.Latest, true);
  const found = metadataOf(typescript, file, className);
  if ('unusual' in found) return found;
  const expanded = expandedText(file, found);
  if (expanded !== undefined) return registerIn(typescript, expanded, className, keyPrefix);
  const style = styleOf(typescript, file, found);
  const imported = importOf(typescript, file, style);
  if ('unusual' in imported) return imported;
  const registered = registrationIn(typescript, file, found, { ...style, keyPrefix });
  if ('unusual' in registered) return registered;
  return { text: apply(text, [...imported, registered]) };
}

function metadataOf(
  typescript: TypeScript,
  file: ts.SourceFile,
  className: string | undefined,
): ts.ObjectLiteralExpression | { unusual: string } {
  const modules = file.statements.filter(typescript.isClassDeclaration).flatMap((declaration) => {
    const decorator = (typescript.getDecorators(declaration) ?? []).find(({ expression }) => {
      return typescript.isCallExpression(expression) && expression.expression.getText(file) === 'Module';
    });
    return decorator ? [{ name: declaration.name?.text, call: decorator.expression as ts.CallExpression }] : [];
  });
  const chosen = className === undefined ? modules : modules.filter(({ name }) => name === className);
  const [module] = chosen;
  if (!module) return { unusual: `it has no ${className ?? 'class'} with @Module` };
  if (chosen.length > 1) return { unusual: `it has ${chosen.length} classes with @Module` };
  const [metadata] = module.call.arguments;
  if (!metadata || !typescript.isObjectLiteralExpression(metadata))
    return { unusual: 'the metadata is not written between the parentheses of @Module' };
  if (metadata.properties.some(typescript.isSpreadAssignment))
    return { unusual: 'the metadata contains other metadata with "..."' };
  return metadata;
}

// Each property of the metadata on a line of its own. `undefined` for line breaks or comments, which would move.
function expandedText({ text }: ts.SourceFile, metadata: ts.ObjectLiteralExpression): string | undefined {
  const source = metadata.getText();
  const { properties } = metadata;
  if (properties.length === 0 || source.includes('\n') || !isPlain(metadata, properties)) return undefined;
  const base = indentationAt(text, metadata.getStart());
  const lines = properties.map((property) => `${base}  ${property.getText()},`);
  return apply(text, [replace(metadata, ['{', ...lines, `${base}}`].join('\n'))]);
}

function styleOf(typescript: TypeScript, file: ts.SourceFile, metadata: ts.ObjectLiteralExpression): Style {
  const last = file.statements.filter(typescript.isImportDeclaration).at(-1);
  const [first] = metadata.properties;
  const base = indentationAt(file.text, metadata.getStart(file));
  const inner =
    first && isFirstOnLine(file.text, first.getStart(file)) && indentationAt(file.text, first.getStart(file));
  return {
    quote: last?.moduleSpecifier.getText(file).startsWith('"') ? '"' : "'",
    unit: inner && inner.length > base.length ? inner.slice(base.length) : '  ',
    semicolon: !last || last.getText(file).endsWith(';') ? ';' : '',
  };
}

function importOf(typescript: TypeScript, file: ts.SourceFile, style: Style): Change[] | { unusual: string } {
  const imports = file.statements.filter(typescript.isImportDeclaration);
  const own = imports.some((declaration) => {
    const bindings = declaration.importClause?.namedBindings;
    if ((declaration.moduleSpecifier as ts.StringLiteral).text !== IMPORT.from) return false;
    if (/^import\s+type\b/.test(declaration.getText(file))) return false;
    if (!bindings || !typescript.isNamedImports(bindings)) return false;
    return bindings.elements.some((each) => each.name.text === IMPORT.name && !each.propertyName && !each.isTypeOnly);
  });
  if (own) return [];
  if (new RegExp(`\\b${IMPORT.name}\\b`).test(file.text))
    return { unusual: `it uses the name ${IMPORT.name} for something else` };
  const line = `import { ${IMPORT.name} } from ${style.quote}${IMPORT.from}${style.quote}${style.semicolon}`;
  const last = imports.at(-1);
  if (!last) {
    const start = /^#!.*\r?\n/.exec(file.text)?.[0].length ?? 0;
    return [{ start, end: start, text: `${line}\n` }];
  }
  // Behind a comment on the same line.
  const end = last.end + file.text.slice(last.end).search(/\r?$/m);
  return [{ start: end, end, text: `\n${line}` }];
}

function registrationIn(
  typescript: TypeScript,
  file: ts.SourceFile,
  metadata: ts.ObjectLiteralExpression,
  { quote, unit, keyPrefix }: Style & Pick<Project, 'keyPrefix'>,
): Change | { unusual: string } {
  const { text } = file;
  const lines = registration(keyPrefix, quote, unit);
  const base = indentationAt(text, metadata.getStart(file));
  const list = (indentation: string, elements: readonly string[]) =>
    ['[', ...elements.map((each) => `${indentation}${unit}${each},`), `${indentation}]`].join('\n');
  const call = (indentation: string) => lines.join(`\n${indentation}${unit}`);

  const property = metadata.properties.find(
    (each) => each.name?.getText(file).replaceAll(/[[\]'"]/g, '') === 'imports',
  );
  if (!property) {
    const [first] = metadata.properties;
    const imports = `imports: ${list(base + unit, [call(base + unit)])},`;
    if (!first) return replace(metadata, `{\n${base}${unit}${imports}\n${base}}`);
    const start = first.getStart(file);
    const gap = isFirstOnLine(text, start) ? `\n${base}${unit}` : ' ';
    return { start, end: start, text: `${imports}${gap}` };
  }
  if (!typescript.isPropertyAssignment(property) || !typescript.isArrayLiteralExpression(property.initializer))
    return { unusual: 'its imports are not a list in square brackets' };

  const array = property.initializer;
  const indentation = indentationAt(text, array.getStart(file));
  // The first, so that the comments and the comma at the end stay as they are.
  if (!array.getText(file).includes('\n') && isPlain(array, array.elements)) {
    const elements = array.elements.map((element) => element.getText(file));
    return replace(array, list(indentation, [call(indentation), ...elements]));
  }
  const start = array.getStart(file) + 1;
  const gap = /^[ \t]*\r?\n/.test(text.slice(start)) ? '' : `\n${indentation}${unit}`;
  return { start, end: start, text: `\n${indentation}${unit}${call(indentation)},${gap}` };
}
