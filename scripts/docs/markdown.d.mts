/** A fenced block of code. */
export interface Block {
  /** `ts`, `sh` and so on; empty if the block names none. */
  readonly language: string;
  /** Number of the first line of the code. */
  readonly line: number;
  readonly text: string;
  /** From a first line such as `// app.module.ts`. */
  readonly fileName: string | undefined;
}

export interface MarkdownFile {
  /** Path from the root of the repository. */
  readonly name: string;
  readonly text: string;
  readonly blocks: readonly Block[];
  /** Everything but the blocks. */
  readonly prose: string;
}

export declare function parseMarkdown(path: string, text: string): MarkdownFile;
export declare function readMarkdown(path: string): Promise<MarkdownFile>;
