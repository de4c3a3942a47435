/** Whether dist is newer than everything it is made of. */
export declare function isBuilt(): Promise<boolean>;

/** Builds the library unless it is built. */
export declare function ensureBuild(): Promise<void>;
