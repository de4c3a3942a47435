// npm run docs:options: writes the tables of options into the pages. Names, types and bounds come from the tables by which
// the library validates the options, meanings and defaults from the TSDoc of the public interfaces.
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import ts from 'typescript';
import { compile } from '../../test/simulation/compile.mjs';
import { markdownTable, withPart } from '../page.mjs';
import { root } from '../run.mjs';

/** Where an option is explained, unless a heading of its page has its name. */
const EXPLAINED = {
  masters: 'setup.md#masters',
  mode: 'sharing.md#shared-locks',
  permits: 'sharing.md#permits',
  reentrant: 'locking.md#nested-calls',
  connectTimeout: 'setup.md#boot',
  drainTimeout: 'setup.md#shutdown',
  observers: 'operations.md#events-and-log-lines',
  name: 'setup.md#several-lock-services',
  guards: '#who-may-see-it',
  actions: '#release-by-force',
  origins: '#other-sites',
  hosts: '#other-names-of-the-host',
};
/** What most applications set or use; all others have a table of their own. */
const EVERYDAY = [
  'masters',
  'keyPrefix',
  'ttl',
  'wait',
  'onLocked',
  'extend',
  'maxHold',
  'mode',
  'permits',
  'reentrant',
];
const LITERAL = /(?<=^|; )(?:'[^']*'|\d[\d.]*(?! ms)|true|false|\[\])(?=$|[,;]| for\b)/g;

/** The pages that do not fit the library, with the text that they should have. */
export async function outdatedPages() {
  const { folder, remove } = await compile(undefined, ['lib']);
  try {
    const load = (file) => import(pathToFileURL(join(folder, `lib/${file}.js`)).href);
    const parts = [...(await partsOfOptions(load)), ...(await partsOfDashboard(load))];
    const pages = new Map();
    for (const { page, name, rows } of parts) {
      const before = pages.get(page) ?? (await readFile(join(root, page), 'utf8'));
      pages.set(page, await withPart(before, page, name, markdownTable(rows(before))));
    }
    return [...pages].filter(([page, text]) => text !== readFileSync(join(root, page), 'utf8'));
  } finally {
    await remove();
  }
}

async function partsOfOptions(load) {
  const { ACQUIRE_OPTIONS } = await load('settings/settings');
  const { MODULE_OPTIONS, EXTRAS } = await load('nest/module-settings');
  const { WITH_LOCK_OPTIONS, METHOD_OPTIONS } = await load('nest/lock-options');
  const { CRON_OPTIONS } = await load('schedule/locked-job.decorators');
  const { LEADER_OPTIONS } = await load('leader/leader.decorator');
  const docs = docsOf([
    ['settings/options', 'AcquireOptions', 'RedlockOptions'],
    ['nest/lock-options', 'WithLockOptions', 'DeclaredLockOptions', 'LockedMethodOptions'],
    ['nest/redlock-module-options.interface', 'LockingModuleOptions', 'RedlockModuleExtras'],
  ]);
  const whereOf = (name) => {
    if (name in EXTRAS) return 'beside `useFactory`';
    const isOfCall = name in ACQUIRE_OPTIONS && name in METHOD_OPTIONS;
    if (name in MODULE_OPTIONS) return isOfCall ? 'also of a call' : '';
    if (isOfCall) return 'of a call';
    if (name in ACQUIRE_OPTIONS) return 'of `LockService`';
    return name in WITH_LOCK_OPTIONS ? 'of `withLock`, decorator, interceptor' : 'of decorator, interceptor';
  };
  const all = { masters: undefined, ...ACQUIRE_OPTIONS, ...METHOD_OPTIONS, ...MODULE_OPTIONS, ...EXTRAS };
  const jobs = docsOf([['schedule/locked-job.decorators', 'LockedJobOptions', 'LockedCronOptions']]);
  const leaders = docsOf([['leader/leader.decorator', 'LeaderOptions']]);
  const rowsOf = (table, meanings) => [
    ['option', 'default', 'meaning'],
    ...Object.entries(table).map(([name, parse]) => {
      const { fallback, meaning } = rowOf(name, parse, meanings);
      return [`\`${name}\``, fallback, withBounds(meaning, kindOf(parse))];
    }),
  ];
  const kindOf = (parse) => parse.kind.replace(/^(?:an?|the) /, '').replaceAll(/'[^']+'/g, '`$&`');
  const table = (names) => (page) => [
    ['option', 'default', 'meaning'],
    ...names.map((name) => {
      const { fallback, meaning } = rowOf(name, all[name], docs);
      return [linked(name, page), fallback, withBounds(meaning, kindOf(all[name]), whereOf(name))];
    }),
  ];
  const rare = Object.keys(all).filter((name) => !EVERYDAY.includes(name));
  return [
    { page: 'docs/options.md', name: 'options', rows: table(EVERYDAY) },
    { page: 'docs/options.md', name: 'rare options', rows: table(rare) },
    { page: 'docs/options.md', name: 'options of jobs', rows: () => rowsOf(CRON_OPTIONS, jobs) },
    { page: 'docs/options.md', name: 'options of leaders', rows: () => rowsOf(LEADER_OPTIONS, leaders) },
  ];
}

async function partsOfDashboard(load) {
  const { PLACEMENT, SETTINGS } = await load('dashboard/options');
  const docs = docsOf([['dashboard/options', 'RedlockDashboardPlacement', 'RedlockDashboardSettings']]);
  const rows = (page) => [
    ['option', 'default', 'meaning'],
    ...Object.entries({ ...PLACEMENT, ...SETTINGS }).map(([name, parse]) => {
      const { fallback, meaning } = rowOf(name, parse, docs);
      return [linked(name, page), fallback, meaning];
    }),
  ];
  return [{ page: 'docs/dashboard.md', name: 'options', rows }];
}

/** The documented default, which must be the one in use if it is a value, and the meaning. */
function rowOf(name, parse, docs) {
  const { isRequired, fallback = isRequired ? 'required' : 'none', meaning } = docs.get(name);
  const [literal] = fallback.match(LITERAL) ?? [];
  if (literal === fallback && !isDeepStrictEqual(parse(name, undefined), parse(name, valueOf(literal)))) {
    throw new Error(`${name}: its TSDoc says that its default is ${literal}, and its parser does not`);
  }
  return { fallback: fallback.replaceAll(LITERAL, '`$&`'), meaning };
}

function valueOf(literal) {
  return literal.startsWith("'") ? literal.slice(1, -1) : JSON.parse(literal);
}

/** What is true or false shows that by its default. */
function withBounds(meaning, kind, where) {
  const bounds = [kind === 'true or false' ? '' : kind, where].filter(Boolean).join(', ');
  return bounds ? `${meaning}; _${bounds}_` : meaning;
}

/** The name of an option, which leads to its explanation. */
function linked(name, page) {
  const place = page.includes(`\n### \`${name}\`\n`) ? `#${name.toLowerCase()}` : EXPLAINED[name];
  return place === undefined ? `\`${name}\`` : `[\`${name}\`](${place})`;
}

/** What the TSDoc of interfaces says of each member: the first sentence, and the default. */
function docsOf(files) {
  return new Map(
    files.flatMap(([file, ...names]) => {
      const path = join(root, `lib/${file}.ts`);
      const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ESNext, true);
      const interfaces = source.statements.filter(ts.isInterfaceDeclaration);
      const members = names.flatMap((name) => interfaces.find((one) => one.name.text === name).members);
      return [...members.flat()].map(docOf);
    }),
  );
}

function docOf(member) {
  const { comment, tags = [] } = member.jsDoc[0];
  const [sentence] = /^.*?\.(?=\s|$)/s.exec(ts.getTextOfJSDocComment(comment));
  const text = sentence.slice(0, -1).replaceAll(/\s+/g, ' ');
  const fallback = tags.find(({ tagName }) => tagName.text === 'default');
  return [
    member.name.text,
    {
      isRequired: !member.questionToken,
      fallback: fallback && ts.getTextOfJSDocComment(fallback.comment).replaceAll(/\s+/g, ' '),
      meaning: text[0].toLowerCase() + text.slice(1),
    },
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [page, text] of await outdatedPages()) await writeFile(join(root, page), text);
}
