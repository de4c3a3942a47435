import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { dateChangelog, type Release, releaseProblems } from '../../../scripts/release/problems.mjs';

const root = resolve(import.meta.dirname, '../../..');
const IMPORT = /^(?:import|export)\s+(?!type\b)[^;]*?from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm;

const PACKAGE = /^(@[^/]+\/)?[^/]+/;

/** Packages that a file needs at run time, directly or through other files. */
async function packagesOf(file: string, seen = new Set<string>()): Promise<Set<string>> {
  // A generated file contains programs of a browser as strings, and imports nothing.
  if (seen.has(file) || file.endsWith('.generated.ts')) return new Set();
  seen.add(file);
  const packages = new Set<string>();
  const source = await readFile(file, 'utf8');
  for (const [, from, bare, dynamic] of source.matchAll(IMPORT)) {
    const name = (from ?? bare ?? dynamic)!;
    const found = name.startsWith('.')
      ? await packagesOf(join(dirname(file), name.replace(/\.js$/, '.ts')), seen)
      : [name.startsWith('node:') ? 'node' : PACKAGE.exec(name)![0]];
    for (const each of found) packages.add(each);
  }
  return packages;
}

interface Manifest {
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>;
}

describe('Optional peers', () => {
  it.each<[string, string[]]>([
    ['index', []],
    ['testing/index', []],
    ['dashboard/index', []],
    ['leader/index', []],
    ['schedule/index', ['@nestjs/schedule', 'cron']],
    ['terminus/index', ['@nestjs/terminus']],
    ['opentelemetry/index', ['@opentelemetry/api']],
    ['sql/index', []],
  ])('of %s are %j', async (entry, expected) => {
    const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Manifest;
    const optional = Object.keys(manifest.peerDependenciesMeta);
    const packages = [...(await packagesOf(join(root, `lib/${entry}.ts`)))];
    expect(packages.filter((name) => optional.includes(name))).toEqual(expected);
    expect(packages.filter((name) => name !== 'node' && !(name in manifest.peerDependencies))).toEqual([]);
  });
});

const changelog = '# Changelog\n\nIntroduction.\n\n## [1.2.0] - 2026-11-21\n\n### Added\n\n## [1.1.0] - 2026-01-01\n';
const repository = { url: 'git+https://github.com/owner/name.git' };
const release: Release = {
  manifest: { version: '1.2.0', repository },
  lockfile: { version: '1.2.0' },
  changelog,
  environment: { GITHUB_REPOSITORY: 'owner/name', GITHUB_REF_TYPE: 'tag', GITHUB_REF_NAME: 'v1.2.0' },
};

describe('A release', () => {
  it('is accepted when version, lockfile, changelog, repository and tag agree', () =>
    expect(releaseProblems(release)).toEqual([]));

  it.each<[string, Partial<Release>]>([
    ['not of the form 1.2.3', { manifest: { version: '1.2.0-rc.1', repository } }],
    ['package-lock.json is for 1.1.0', { lockfile: { version: '1.1.0' } }],
    ['newest entry of CHANGELOG.md is 1.1.0', { changelog: '## [1.1.0] - 2026-01-01\n' }],
    ['is not dated, but "unreleased"', { changelog: changelog.replace('2026-11-21', 'unreleased') }],
    ['no `repository.url`', { manifest: { version: '1.2.0' } }],
    ['no `repository.url`', { manifest: { version: '1.2.0', repository: { url: 'owner/name' } } }],
    ['this is fork/name', { environment: { GITHUB_REPOSITORY: 'fork/name' } }],
    ['the tag is v1.3.0', { environment: { GITHUB_REF_TYPE: 'tag', GITHUB_REF_NAME: 'v1.3.0' } }],
  ])('is refused: %s', (problem, change) =>
    expect(releaseProblems({ ...release, ...change }).join('\n')).toContain(problem),
  );

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

const folder = join(root, '.github/workflows');
const PARTS = ['checks', 'models', 'packages', 'servers'];

type Permissions = Readonly<Record<string, string>>;

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly uses?: string;
  readonly needs?: string;
  readonly environment?: string;
  readonly permissions?: Permissions;
  readonly 'timeout-minutes'?: number;
  readonly strategy?: { readonly matrix: { readonly node?: readonly string[]; readonly part?: readonly string[] } };
  readonly steps?: readonly Step[];
}

interface Workflow {
  readonly on: Readonly<Record<string, { readonly tags?: readonly string[] } | null>>;
  readonly permissions: Permissions;
  readonly jobs: Readonly<Record<string, Job>>;
}

const files = readdirSync(folder);
const textOf = (file: string): string => readFileSync(join(folder, file), 'utf8');
// Duplicate keys and unknown tags are errors, and `on` is a string, as GitHub reads it.
const workflowOf = (file: string): Workflow => parse(textOf(file), { strict: true, version: '1.2' }) as Workflow;
const jobsOf = (file: string): readonly Job[] => Object.values(workflowOf(file).jobs);

describe('Workflows', () => {
  it('are exactly those that are tested here', () => expect(files.sort()).toEqual(['ci.yml', 'release.yml']));

  it.each(files)('%s pins actions to commits, and states their versions', (file) => {
    const uses = textOf(file)
      .split('\n')
      .filter((line) => /^\s*(?:- )?uses: (?!\.\/)/.test(line));
    expect(uses.length).toBe(jobsOf(file).flatMap(({ steps = [] }) => steps.filter((step) => step.uses)).length);
    for (const line of uses) expect(line).toMatch(/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it.each(files)('%s may only read, and uses no secret', (file) => {
    expect(workflowOf(file).permissions).toEqual({ contents: 'read' });
    expect(textOf(file)).not.toMatch(/secrets\.|NODE_AUTH_TOKEN|NPM_TOKEN/);
    for (const { steps = [] } of jobsOf(file)) {
      const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'));
      for (const checkout of checkouts) expect(checkout.with).toMatchObject({ 'persist-credentials': false });
    }
  });

  it.each(files)('%s limits the time of each job', (file) => {
    const own = jobsOf(file).filter(({ uses }) => !uses);
    for (const job of own) expect(job['timeout-minutes']).toBeGreaterThan(0);
  });

  it('test on every line of Node that package.json supports, beginning with the lowest version', () => {
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { engines: { node: string } };
    const { tests } = workflowOf('ci.yml').jobs;
    const node = tests!.strategy!.matrix.node!;
    const ranges = engines.node.split(' || ');
    const supported = ranges.map((range) => range.replace(/^\D+/, ''));
    expect(node[0]).toBe(supported[0]);
    const lines = node.map(Number.parseFloat).map(Math.floor);
    expect(lines.slice(0, supported.length)).toEqual(supported.map(Number.parseFloat).map(Math.floor));
    // The last range has no end: it covers each later line with long-term support, which is every second line.
    expect(ranges.at(-1)).toMatch(/^>=/);
    for (const [index, line] of lines.slice(supported.length).entries()) {
      expect(line).toBe(lines[supported.length - 1]! + 2 * (index + 1));
    }
    expect(tests!.steps!.at(-1)!.run).toBe('.ci/run tests');
  });

  it('run all parts of .ci/run, and at the same time', () => {
    const { parts } = workflowOf('ci.yml').jobs;
    expect([parts!.needs, parts!.strategy!.matrix.part]).toEqual([undefined, PARTS]);
    expect(parts!.steps!.at(-1)!.run).toBe('.ci/run ${{ matrix.part }}');
    const script = readFileSync(join(root, '.ci/run'), 'utf8');
    expect(script).toContain(`set -- ${[...PARTS, 'tests'].join(' ')};`);
    expect(script).toContain('tests() {\n  step npm test\n  step npm run --silent test:all -- --rest\n}');
    for (const part of [...PARTS, 'tests']) expect(script).toMatch(new RegExp(`^${part}\\(\\) \\{`, 'm'));
  });

  it('publish what was checked, from a tag, with provenance and nothing but an identity', () => {
    const { on, jobs } = workflowOf('release.yml');
    expect(Object.keys(on)).toEqual(['push']);
    expect(on['push']).toEqual({ tags: ['v[0-9]+.[0-9]+.[0-9]+'] });
    const { check, publish } = jobs;
    expect(check!.uses).toBe('./.github/workflows/ci.yml');
    expect(workflowOf('ci.yml').on).toHaveProperty('workflow_call');
    expect(publish).toMatchObject({
      needs: 'check',
      environment: 'npm',
      permissions: { contents: 'read', 'id-token': 'write' },
    });
    expect(publish!.steps!.at(-1)!.run).toBe('npm publish --provenance --access public');
  });
});
