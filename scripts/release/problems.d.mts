export interface Release {
  readonly manifest: { readonly version: string; readonly repository?: { readonly url: string } };
  readonly lockfile: { readonly version: string };
  readonly changelog: string;
  readonly environment: Readonly<Partial<Record<string, string>>>;
}

/** Why this must not be published, one line each. */
export declare function releaseProblems(release: Release): string[];

/** The changelog of a version that is released on that day, in ISO form. */
export declare function dateChangelog(changelog: string, version: string, day: string): string;
