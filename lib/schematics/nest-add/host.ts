// What the schematic uses of @angular-devkit/schematics, which is there only in the process of a command line. These
// types keep the package free of a dependency on it.

/** The files of the application: the part of `Tree` that is used here. */
export interface Tree {
  exists(path: string): boolean;
  readText(path: string): string;
  create(path: string, content: string): void;
  overwrite(path: string, content: string): void;
  getDir(path: string): Directory;
}

/** The part of `DirEntry` that is used here. */
export interface Directory {
  readonly path: string;
  readonly subdirs: readonly string[];
  readonly subfiles: readonly string[];
  dir(name: string): Directory;
}

/** The part of `SchematicContext` that is used here. */
export interface Context {
  readonly logger: { info(message: string): void; warn(message: string): void };
  addTask(task: { toConfiguration(): { name: string; options: object } }): unknown;
}

/** The options in `schema.json`. */
export interface NestAddOptions {
  readonly project?: string;
  readonly sourceRoot?: string;
  readonly skipCompose?: boolean;
  readonly skipSpec?: boolean;
  readonly skipInstall?: boolean;
}
