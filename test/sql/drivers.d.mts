/**
 * Installs the drivers and object mappers of test/sql if they are missing. Resolves with why a recipe cannot run here, by
 * its name.
 */
export declare function ensureSqlDrivers(): Promise<Readonly<Record<string, string>>>;
