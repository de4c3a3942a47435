const VERSION = /^\d+\.\d+\.\d+$/;
const HEADING = /^## \[(.+?)\] - (.+)$/m;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const REPOSITORY = /^git\+https:\/\/github\.com\/([^/]+\/[^/]+)\.git$/;

/**
 * The reasons why the package must not be published, one line each.
 *
 * @param environment the variables of GitHub Actions: the repository, and the tag that was pushed
 */
export function releaseProblems({ manifest, lockfile, changelog, environment }) {
  const { version, repository } = manifest;
  const [, logged, day] = HEADING.exec(changelog) ?? [];
  const { GITHUB_REPOSITORY: origin, GITHUB_REF_TYPE: kind, GITHUB_REF_NAME: tag } = environment;
  const [, address] = REPOSITORY.exec(repository?.url ?? '') ?? [];
  return Object.entries({
    [`version ${version} is not of the form 1.2.3, which is what npm's tag "latest" is for`]: !VERSION.test(version),
    [`package-lock.json is for ${lockfile.version}, package.json says ${version}`]: lockfile.version !== version,
    [`the newest entry of CHANGELOG.md is ${logged}, package.json says ${version}`]: logged !== version,
    [`the newest entry of CHANGELOG.md is not dated, but "${day}": npm version does that`]: !DAY.test(day ?? ''),
    'package.json has no `repository.url` of the form git+https://github.com/<owner>/<name>.git: provenance is refused without':
      address === undefined,
    [`package.json says that it is built from ${address}, but this is ${origin}`]:
      address !== undefined && origin !== undefined && address !== origin,
    [`the tag is ${tag}, package.json says ${version}`]: kind === 'tag' && tag !== `v${version}`,
  })
    .filter(([, isProblem]) => isProblem)
    .map(([problem]) => problem);
}

/** The changelog of a version that is released on that day. Its newest entry must be the unreleased one. */
export function dateChangelog(changelog, version, day) {
  const [heading, name, date] = HEADING.exec(changelog) ?? [];
  const isToCome = date === 'unreleased' && (name === version || name === 'Unreleased');
  if (!isToCome)
    throw new Error(`CHANGELOG.md does not begin with "## [${version}] - unreleased" but with "${heading}"`);
  return changelog.replace(heading, `## [${version}] - ${day}`);
}
