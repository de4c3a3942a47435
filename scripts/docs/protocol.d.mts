export interface SourceFile {
  /** Path from the root of the repository, with slashes. */
  readonly name: string;
  readonly text: string;
}

export interface Problem {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

export declare const PROTOCOL: string;
export declare function protocolProblems(files: readonly SourceFile[]): readonly Problem[];
export declare function protocolFiles(root: string): Promise<readonly SourceFile[]>;
