/** Whether dist is newer than all of its sources. */
export declare function isBuilt(): Promise<boolean>;

/** Builds the library unless the build is up to date. */
export declare function ensureBuild(): Promise<void>;
