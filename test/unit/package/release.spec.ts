import { describe, expect, it } from '@jest/globals';
import { dateChangelog, type Release, releaseProblems } from '../../../scripts/release/problems.mjs';

const changelog = '# Changelog\n\nIntroduction.\n\n## [1.2.0] - 2026-11-21\n\n### Added\n\n## [1.1.0] - 2026-01-01\n';
const repository = { url: 'git+https://github.com/owner/name.git' };
const release: Release = {
  manifest: { version: '1.2.0', repository },
  lockfile: { version: '1.2.0' },
  changelog,
  environment: { GITHUB_REPOSITORY: 'owner/name', GITHUB_REF_TYPE: 'tag', GITHUB_REF_NAME: 'v1.2.0' },
};

describe('A release', () => {
  it('is accepted when version, lockfile, changelog, repository and tag agree', () => {
    expect(releaseProblems(release)).toEqual([]);
  });

  it.each<[string, Partial<Release>]>([
    ['not of the form 1.2.3', { manifest: { version: '1.2.0-rc.1', repository } }],
    ['package-lock.json is for 1.1.0', { lockfile: { version: '1.1.0' } }],
    ['newest entry of CHANGELOG.md is 1.1.0', { changelog: '## [1.1.0] - 2026-01-01\n' }],
    ['is not dated, but "unreleased"', { changelog: changelog.replace('2026-11-21', 'unreleased') }],
    ['no `repository.url`', { manifest: { version: '1.2.0' } }],
    ['no `repository.url`', { manifest: { version: '1.2.0', repository: { url: 'owner/name' } } }],
    ['this is fork/name', { environment: { GITHUB_REPOSITORY: 'fork/name' } }],
    ['the tag is v1.3.0', { environment: { GITHUB_REF_TYPE: 'tag', GITHUB_REF_NAME: 'v1.3.0' } }],
  ])('is refused: %s', (problem, change) => {
    expect(releaseProblems({ ...release, ...change }).join('\n')).toContain(problem);
  });

  it.each(['1.3.0', 'Unreleased'])('dates the upcoming entry, called %s', (name) => {
    const before = changelog.replace('## [1.2.0] - 2026-11-21', `## [${name}] - unreleased`);
    const after = dateChangelog(before, '1.3.0', '2026-12-01');
    expect(after).toBe(changelog.replace('## [1.2.0] - 2026-11-21', '## [1.3.0] - 2026-12-01'));
  });

  it('does not date an entry of another version', () => {
    expect(() => dateChangelog(changelog, '1.3.0', '2026-12-01')).toThrow(
      'does not begin with "## [1.3.0] - unreleased"',
    );
  });
});
