// Which file of the repository becomes which page of the site. Links between the files become links between the pages.
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * The groups of the sidebar: title, and the pages in order, each with its source and its title. The groups with a sentence
 * are the doors of the home page. The search prefers the earlier groups.
 */
export const GROUPS = [
  {
    text: 'Guide',
    about: 'Lock a method, a request or a cron job, and test it without Redis.',
    pages: [
      ['first-lock.md', 'README.md', 'First lock'],
      ['setup.md', 'docs/setup.md', 'Set up'],
      ['locking.md', 'docs/locking.md', 'Locking'],
      ['long-work.md', 'docs/long-work.md', 'Long work'],
      ['sharing.md', 'docs/sharing.md', 'Shared locks and permits'],
      ['fenced-writes.md', 'docs/fenced-writes.md', 'Fenced writes'],
      ['jobs.md', 'docs/jobs.md', 'Cron jobs'],
      ['leader.md', 'docs/leader.md', 'Leader election'],
      ['recipes.md', 'docs/recipes.md', 'Recipes'],
      ['options.md', 'docs/options.md', 'Options'],
      ['testing.md', 'docs/testing.md', 'Testing'],
      ['errors.md', 'docs/errors.md', 'Errors and log messages'],
      ['migration.md', 'docs/migration.md', 'Migration'],
    ],
  },
  {
    text: 'In production',
    about: 'Choose the masters, deploy, watch, and act when one fails.',
    pages: [
      ['deployment.md', 'docs/deployment.md', 'Deployment'],
      ['three-masters.md', 'docs/three-masters.md', 'Three masters'],
      ['one-redis.md', 'docs/one-redis.md', 'One Redis'],
      ['sentinel-and-cluster.md', 'docs/sentinel-and-cluster.md', 'Sentinel or cluster'],
      ['managed-services.md', 'docs/managed-services.md', 'Managed services'],
      ['operations.md', 'docs/operations.md', 'Operations'],
      ['dashboard.md', 'docs/dashboard.md', 'Dashboard'],
    ],
  },
  {
    text: 'How and why',
    about: 'What is promised, under which assumptions, and how that is tested.',
    pages: [
      ['how-it-works.md', 'docs/how-it-works.md', 'How it works'],
      ['protocol.md', 'docs/protocol.md', 'Protocol'],
      ['promises.md', 'docs/promises.md', 'Promises'],
      ['comparison.md', 'docs/comparison.md', 'Comparison'],
      ['performance.md', 'docs/performance.md', 'Performance'],
      ['matrix.md', 'docs/matrix.md', 'Matrix'],
    ],
  },
  {
    text: 'Contribute',
    pages: [
      ['architecture.md', 'docs/architecture.md', 'Architecture'],
      ['contributing.md', 'CONTRIBUTING.md', 'Contributing'],
      ['simulation.md', 'test/simulation/README.md', 'Simulation'],
      ['model.md', 'test/model/README.md', 'Model'],
      ['benchmark.md', 'test/benchmark/README.md', 'Benchmark'],
      ['benchmark-results.md', 'test/benchmark/results.md', 'Results of the benchmark'],
      ['security.md', 'SECURITY.md', 'Security'],
      ['releasing.md', 'RELEASING.md', 'Releasing'],
      ['changelog.md', 'CHANGELOG.md', 'Changelog'],
    ],
  },
];

/** Not in the sidebar, because the sidebar is what it shows. */
const CONTENTS = ['contents.md', 'docs/README.md', 'Contents'];

/** All pages of the site: target, source and title. */
export async function allPages() {
  const samples = (await readdir(join(root, 'sample'))).filter((name) => /^\d\d-/.test(name)).sort();
  const ofSamples = samples.map((name) => [`samples/${name}.md`, `sample/${name}/README.md`, name]);
  return { groups: GROUPS.toSpliced(-1, 0, { text: 'Samples', pages: ofSamples }), contents: CONTENTS };
}

/** Of the README: what the library is, the line that installs it, and the lines that lock. */
export async function introduction() {
  const text = await readFile(join(root, 'README.md'), 'utf8');
  const [, summary] = text.split(/\n{2,}/);
  const [code] = /^```ts$[\s\S]*?^```$/m.exec(text);
  const [install] = /^```sh$[\s\S]*?^```$/m.exec(text);
  return { summary: withoutLinks(summary.replaceAll('\n', ' ')), install, code };
}

/** What the contents say about each page that has a line of its own, by its source. */
export async function descriptions() {
  const text = await readFile(join(root, CONTENTS[1]), 'utf8');
  const lines = text.replace(/\n +/g, ' ').matchAll(/^- \[[^\]]+\]\(([^)]+)\): (.+)$/gm);
  return new Map([...lines].map(([, path, words]) => [posix.join('docs', path), withoutLinks(words)]));
}

/** The text of a page, with links to other pages instead of links to other files. */
export async function textOf([target, source], pages) {
  const text = await readFile(join(root, source), 'utf8');
  const bySource = new Map(pages.map(([to, from]) => [from, to]));
  return outsideCode(text, (part) =>
    // VitePress shows the brackets of a list of tasks.
    part.replace(/^- \[ \] /gm, '- ').replace(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (link, image, words, url) => {
      if (/^[a-z]+:|^#/.test(url)) return link;
      const [path, anchor = ''] = url.split(/(?=#)/);
      const file = posix.normalize(posix.join(posix.dirname(source), path)).replace(/\/$/, '');
      const page = bySource.get(file) ?? bySource.get(`${file}/README.md`);
      if (page !== undefined) return `[${words}](${relative(target, page)}${anchor})`;
      if (image) return `![${words}](/${posix.basename(file)})`;
      // A file that is no page: readers of the site have no repository beside it.
      return words;
    }),
  );
}

/** The images that pages show. */
export async function images() {
  const files = await readdir(join(root, 'docs'));
  return files.filter((file) => /\.(?:png|svg)$/.test(file)).map((file) => join(root, 'docs', file));
}

function withoutLinks(text) {
  return text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
}

function relative(from, to) {
  const path = posix.relative(dirname(from), to);
  return path.startsWith('.') ? path : `./${path}`;
}

/** Changes everything but blocks of code. */
function outsideCode(text, change) {
  return text
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part, index) => (index % 2 === 0 ? change(part) : part))
    .join('');
}
