import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { checkLinks } from '../../../scripts/docs/links.mjs';
import { parseMarkdown } from '../../../scripts/docs/markdown.mjs';

let folder: string;

beforeAll(async () => {
  await mkdir('build', { recursive: true });
  folder = await mkdtemp(join(process.cwd(), 'build/check-docs-'));
  await writeFile(
    join(folder, 'quoted.ts'),
    'first();\n  second(1, () => {\n  });\nthird(); // last but one\n// last\nfourth();\n',
  );
});

afterAll(() => rm(folder, { recursive: true, force: true }));

interface Verdict {
  readonly status: number;
  /** Each as `<line>: <message>`. */
  readonly problems: readonly string[];
}

async function check(name: string, text: string): Promise<Verdict> {
  const path = join(folder, name);
  await writeFile(path, text);
  return new Promise((resolve) => {
    execFile(process.execPath, ['scripts/check-docs.mjs', path], (error, _, stderr) => {
      const where = `${relative(process.cwd(), path)}:`;
      const problems = stderr.split('\n').filter((line) => line !== '');
      expect(problems.filter((line) => !line.startsWith(where))).toEqual([]);
      resolve({ status: Number(error?.code ?? 0), problems: problems.map((line) => line.slice(where.length)) });
    });
  });
}

it.each<[string, string, string[]]>([
  ['docs/errors.md', '[a](jobs.md) [b](performance.svg) [c](../README.md)', []],
  ['docs/errors.md', '[a](../sample/01-orders)', ['../sample/01-orders']],
  ['README.md', '[a](CONTRIBUTING.md) [b](docs/jobs.md) ![c](docs/dashboard.png)', ['CONTRIBUTING.md']],
  ['CONTRIBUTING.md', '[a](sample/01-orders)', []],
])('A page of the package, as %s, links to nothing outside of the package', async (name, text, targets) => {
  const problems = await checkLinks(parseMarkdown(join(process.cwd(), name), text));
  expect(problems.map(({ message }) => message)).toEqual(
    targets.map((target) => `the link to ${target} leads out of the package: name the path`),
  );
});

describe('The check of the documentation', () => {
  it('finds nothing in a correct document', async () => {
    const text = `
# A title with \`code\`, and a [link](quoted.ts)

[There](#a-title-with-code-and-a-link), [there](../../README.md#demo-and-tests), \`npm test\`, \`lib/redlock/*.ts\`, \`[x](y)\`.
Of an earlier commit: \`0123abc\`, \`lib/gone.ts\`.

\`\`\`sh
git checkout 0123abc
node scripts/gone.mjs
\`\`\`

\`\`\`ts
// named.ts
export const ttl = '10s' as const;
\`\`\`

1. In a list:

   \`\`\`ts
   import { LockService } from 'nestjs-redlock';
   import { ttl } from './named.js';

   export const take = (locks: LockService) => locks.acquire('a', ttl);
   \`\`\`

\`\`\`diff
-import { nothing } from 'nowhere';
+import { ttl } from './named.js';

 export const copy: string = ttl;
\`\`\`

\`\`\`ts
// from quoted.ts
first();
// ...
third();
fourth();
\`\`\`

\`\`\`ts
// from quoted.ts
first();
second(1, () => { ... });
fourth();
\`\`\`

\`\`\`sh
npm run build && npx nestjs-redlock doctor # and npm run nothing
\`\`\`

\`\`\`json
{ "a": [1] }
\`\`\`
`;
    expect(await check('right.md', text)).toEqual({ status: 0, problems: [] });
  }, 60_000);

  it('names the file and the line of every error', async () => {
    const text = `# Title
[nowhere](nowhere.md) and [no such heading](#titel), on one line
![picture](https://example.org/a.png), which is not checked, and ![one of ours](nothing.svg)
\`npm run nothing\`, \`lib/nothing.ts\`, \`npx nestjs-redlock destroy\`
[outside](../../../..)
\`\` \`code\` \`\`, and [nowhere](after-a-code-span-with-backticks.md)

\`\`\`ts
import { RedlockModule } from 'nestjs-redlock';

RedlockModule.forRoot({ masters: 'memory', ttl: '10 seconds' });
\`\`\`

\`\`\`diff
-const kept: number = 'gone';
+const kept: number = 'here';
\`\`\`

\`\`\`ts
// from quoted.ts
first();
third();
\`\`\`

\`\`\`ts
// from nothing.ts
first();
\`\`\`

\`\`\`ts
// from quoted.ts
first();
second(2, () => { ... });
\`\`\`

\`\`\`sh
npm run lint
npm run nothing -w sample-01-orders
node scripts/nothing.mjs
\`\`\`

\`\`\`sh
if true
\`\`\`

\`\`\`json
{ "a": 1, }
\`\`\`

\`\`\`tpyescript
\`\`\`

\`\`\`ts
// twice.ts
\`\`\`

\`\`\`ts
// twice.ts
\`\`\`

\`\`\`ts
const open = 1;
`;
    const { status, problems } = await check('wrong.md', text);
    expect(status).toBe(1);
    // Other programs write what follows these words, and may change it.
    expect(problems.map((problem) => problem.replace(/(TS\d+|no shell can read this|no JSON): .*/, '$1'))).toEqual([
      '2: the link to nowhere.md leads nowhere',
      '2: the link to #titel has an anchor that no heading there has',
      '3: the link to nothing.svg leads nowhere',
      '4: npm script "nothing" is not one of nestjs-redlock',
      '4: nestjs-redlock has no command "destroy"',
      '4: there is no lib/nothing.ts',
      '5: the link to ../../../.. leaves the repository',
      '6: the link to after-a-code-span-with-backticks.md leads nowhere',
      '11: TS2322',
      '16: TS2322',
      '22: is not what quoted.ts says here',
      '26: there is no nothing.ts',
      '33: is not what quoted.ts says here',
      '38: npm script "nothing" is not one of sample-01-orders',
      '39: there is no scripts/nothing.mjs',
      '43: no shell can read this',
      '47: is no JSON',
      '50: no check exists for code blocks in "tpyescript"',
      '58: is a second twice.ts in this file',
      '61: the block has no end',
    ]);
  }, 60_000);
});
