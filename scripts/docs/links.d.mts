import type { MarkdownFile } from './markdown.mjs';
import type { Problem } from './protocol.mjs';

export declare function checkLinks(file: MarkdownFile): Promise<readonly Problem[]>;
