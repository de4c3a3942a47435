import { posix } from 'node:path';
import type ts from 'typescript';
import type { Tree } from './host.js';
import type { TypeScript } from './typescript.js';
import type { Project } from './workspace.js';

/** Where the root module of an application is. */
export interface RootModule {
  readonly path: string;
  /** Undefined if the entry file does not show it. */
  readonly className: string | undefined;
}

/** Finds the module that the entry file passes to `NestFactory`; otherwise `app.module.ts`, if it exists. */
export function findRootModule(typescript: TypeScript, tree: Tree, project: Project): RootModule | undefined {
  const { entry, sourceRoot } = project;
  const root = tree.exists(entry) ? rootOfEntry(typescript, tree, entry) : undefined;
  // An entry file that names another module, which is not found, must not lead to a module that it does not use.
  if (root) return root.module;
  const usual = posix.join(sourceRoot, 'app.module.ts');
  return tree.exists(usual) ? { path: usual, className: undefined } : undefined;
}

/** The module that the entry file names, if it can be found; `undefined` if the file names none. */
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

/** The name that is the first argument of `NestFactory.create`, `createMicroservice` or `createApplicationContext`. */
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
