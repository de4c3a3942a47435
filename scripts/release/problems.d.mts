export interface Release {
  readonly manifest: { readonly version: string; readonly repository?: { readonly url: string } };
  readonly lockfile: { readonly version: string };
  readonly changelog: string;
  readonly environment: Readonly<Partial<Record<string, string>>>;
}

/** The reasons why the package must not be published, one line each. */
export declare function releaseProblems(release: Release): string[];

/** The changelog of a version that is released on that day (ISO 8601). */
export declare function dateChangelog(changelog: string, version: string, day: string): string;
