// Checks that readers can type in what the Markdown files show: TypeScript compiles, shell and JSON parse, quotations
// match their files, links lead somewhere, the commands and files that the text names exist, tables are not too wide, the
// README and the pages stay within their budgets, the rules of the protocol and their citations fit, and options are
// described as the library has them.
//
// node scripts/check-docs.mjs [file.md ...]: checks those files; by default, all files of the repository
import { resolve } from 'node:path';
import { budgetProblems } from './docs/budgets.mjs';
import { checkCommandsInProse, checkShellBlock } from './docs/commands.mjs';
import { checkLinks } from './docs/links.mjs';
import { markdownFiles, readMarkdown } from './docs/markdown.mjs';
import { outdatedPages } from './docs/options.mjs';
import { protocolFiles, protocolProblems } from './docs/protocol.mjs';
import { checkQuotation } from './docs/quotations.mjs';
import { checkTypeScript } from './docs/typescript.mjs';
import { root } from './run.mjs';

const TYPESCRIPT = new Set(['ts', 'typescript', 'diff']);
const SHELL = new Set(['sh', 'bash', 'shell']);
/** Languages of blocks that are not checked: output, and languages without a parser here. */
const SHOWN = new Set(['', 'text', 'sql', 'yaml', 'graphql', 'http', 'promql', 'dockerfile']);

const paths = process.argv.slice(2).map((path) => resolve(path));
const files = await Promise.all((paths.length > 0 ? paths : await markdownFiles()).map(readMarkdown));
const blocks = files.flatMap((file) => file.blocks.map((block) => ({ file, block })));
const code = blocks.filter(({ block }) => TYPESCRIPT.has(block.language) && !block.quotes);

const problems = [
  ...(await Promise.all(files.map(checkText))).flat(),
  ...(await Promise.all(blocks.map(checkBlock))).flat(),
  ...checkTypeScript(code),
  ...(paths.length > 0 ? [] : await problemsOfAll()),
];
problems.sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1));
for (const { file, line, message } of problems) console.error(`${file}:${line}: ${message}`);
console.log(
  problems.length > 0
    ? `${problems.length} problems`
    : `${files.length} Markdown files, ${blocks.length} blocks, ${code.length} of them compiled`,
);
process.exitCode = problems.length > 0 ? 1 : 0;

async function checkText(file) {
  const open = file.unclosed && { file: file.name, line: file.unclosed.line - 1, message: 'the block has no end' };
  return [...(open ? [open] : []), ...checkCommandsInProse(file), ...(await checkLinks(file))];
}

async function checkBlock({ file, block }) {
  const { language, quotes, text, line } = block;
  if (quotes) return checkQuotation(file, block);
  if (SHELL.has(language)) return checkShellBlock(file, block);
  if (language === 'json') return checkJson(file.name, line, text);
  if (TYPESCRIPT.has(language) || SHOWN.has(language)) return [];
  return [{ file: file.name, line: line - 1, message: `no check exists for code blocks in "${language}"` }];
}

async function problemsOfAll() {
  const message = 'its options are not those of the library: npm run docs:options writes them';
  const outdated = (await outdatedPages()).map(([file]) => ({ file, line: 1, message }));
  return [...budgetProblems(files), ...protocolProblems(await protocolFiles(root)), ...outdated];
}

function checkJson(file, line, text) {
  try {
    JSON.parse(text);
    return [];
  } catch (error) {
    return [{ file, line, message: `is no JSON: ${error.message}` }];
  }
}
