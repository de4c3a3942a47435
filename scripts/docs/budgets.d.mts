import type { MarkdownFile } from './markdown.mjs';
import type { Problem } from './protocol.mjs';

export declare function budgetProblems(files: readonly MarkdownFile[]): readonly Problem[];
