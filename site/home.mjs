// What the site has beside its pages: the home page, and llms.txt (https://llmstxt.org).
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { descriptions, introduction, root } from './pages.mjs';

/** The home page: what the library is, how to install it, the lines that lock, and a door to each ring of pages. */
export async function homePage(groups) {
  const { summary, install, code } = await introduction();
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const [sentence] = /^.*?\.(?= |$)/.exec(summary);
  const doors = groups.filter(({ about }) => about !== undefined).map(doorTo);
  const template = await readFile(join(import.meta.dirname, 'home.md'), 'utf8');
  const [[target, , title]] = groups[0].pages;
  const start = `${install}\n\n[${title}](./${target})`;
  const parts = { sentence, start, code, version, doors: doors.join('\n\n') };
  return template.replace(/<!-- (\w+) -->/g, (comment, name) => parts[name] ?? comment);
}

function doorTo({ text, about, pages }) {
  const links = pages.map(([target, , title]) => `[${title}](./${target})`);
  return `<div class="door">\n\n## [${text}](./${pages[0][0]})\n\n${about}\n\n${links.join(' ')}\n\n</div>`;
}

/** The list of all pages in Markdown, which are beside their HTML. What a reader can skip is under Optional. */
export async function llmsText(groups) {
  const { summary } = await introduction();
  const about = await descriptions();
  const lines = ([target, source, title]) =>
    `- [${title}](${target})${about.has(source) ? `: ${about.get(source)}` : ''}`;
  const rings = groups.filter((group) => group.about !== undefined);
  const optional = {
    text: 'Optional',
    pages: groups.filter((group) => !rings.includes(group)).flatMap((group) => group.pages),
  };
  const sections = [...rings, optional].map(({ text, pages }) => `## ${text}\n\n${pages.map(lines).join('\n')}\n`);
  return `# nestjs-redlock\n\n> ${summary}\n\n${sections.join('\n')}`;
}
