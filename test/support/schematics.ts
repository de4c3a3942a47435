import { createRequire } from 'node:module';

// Loaded without its declarations, which do not compile with `exactOptionalPropertyTypes`. What is used of them is here.
const require = createRequire(import.meta.url);
const { HostTree } = require('@angular-devkit/schematics') as { HostTree: new () => SchematicTree };
const { SchematicTestRunner } = require('@angular-devkit/schematics/testing') as {
  SchematicTestRunner: new (name: string, collection: string) => SchematicRunner;
};

/** Files in memory that a schematic changes. */
export interface SchematicTree {
  readonly files: string[];
  create(path: string, content: string): void;
  readText(path: string): string;
  readJson(path: string): unknown;
}

/** The engine that a command line runs schematics in. */
export interface SchematicRunner {
  readonly logger: { subscribe(listener: (entry: { level: string; message: string }) => void): unknown };
  readonly tasks: readonly { name: string; options: unknown }[];
  runSchematic(name: string, options: object, tree: SchematicTree): Promise<SchematicTree>;
}

/** An engine for the schematics of a collection. */
export function schematicRunner(name: string, collection: string): SchematicRunner {
  return new SchematicTestRunner(name, collection);
}

/** A tree of these files, by their paths. */
export function treeOf(files: Record<string, string>): SchematicTree {
  const tree = new HostTree();
  for (const [path, content] of Object.entries(files)) tree.create(path, content);
  return tree;
}

/** The content of all files, by their absolute paths. */
export function contentOf(tree: SchematicTree): Record<string, string> {
  return Object.fromEntries(tree.files.map((path) => [path, tree.readText(path)]));
}
