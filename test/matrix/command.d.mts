/** Resolves with the path of a version of Node, which is downloaded from the npm registry unless it is there. */
export declare function ensureNode(version: string): Promise<string>;
