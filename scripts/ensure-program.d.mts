/** Names of the packages that contain a program, by package manager. */
export type Packages = Readonly<Record<string, readonly string[]>>;

/** The result of `find`, after an installation if necessary. Otherwise rejects with the command to run. */
export declare function ensureProgram(
  name: string,
  find: () => string | undefined,
  packages: Packages,
  help: string,
): Promise<string>;

/** Path of a program; `undefined` if PATH does not contain it. */
export declare function onPath(name: string): string | undefined;
