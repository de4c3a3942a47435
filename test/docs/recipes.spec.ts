import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService, RedlockModule, WithLock } from 'nestjs-redlock';
import { type MarkdownFile, readMarkdown } from '../../scripts/docs/markdown.mjs';

const page = await readMarkdown('docs/testing.md');

await mkdir('build', { recursive: true });
const folder = await mkdtemp(join(process.cwd(), 'build/recipes-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

/**
 * Writes the code blocks that name a file. Their lines keep their numbers, so that a failure points into the document.
 */
async function write({ name, blocks }: MarkdownFile): Promise<string[]> {
  const files = blocks.filter(({ language, fileName }) => language === 'ts' && fileName !== undefined);
  const written = files.map(async ({ fileName, line, text }) => {
    const path = join(folder, name, fileName!);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, '\n'.repeat(line - 1) + text);
    return path;
  });
  return (await Promise.all(written)).filter((path) => path.endsWith('.spec.ts'));
}

const specs = await write(page);
// Each import registers the tests of a file.
for (const spec of specs) await import(spec);

describe('The recipes', () => {
  it('include every expected file', () => {
    expect(specs.map((path) => path.slice(folder.length + 1)).sort()).toEqual([
      'docs/testing.md/app.spec.ts',
      'docs/testing.md/fake-timers.jest.spec.ts',
      'docs/testing.md/instances.spec.ts',
      'docs/testing.md/order.service.spec.ts',
      'docs/testing.md/report.job.spec.ts',
    ]);
  });
});

const quoted = page.blocks.filter(({ language }) => language === 'text').map(({ text }) => text.replaceAll('\n', ' '));

@Injectable()
class OrderService {
  @WithLock('order', '10s')
  async ship(): Promise<void> {}
}

@Injectable()
class Injecting {
  constructor(readonly locks: LockService) {}
}

const compile = (type: typeof OrderService | typeof Injecting) => Test.createTestingModule({ providers: [type] });

const SILENT = { log: () => undefined, warn: () => undefined, error: () => undefined };

/** What a user does whose spec breaks. */
const BROKEN: Record<string, () => Promise<unknown>> = {
  'the spec of `nest g service`': () => compile(OrderService).compile(),
  'an object made with `new`': () => new OrderService().ship(),
  'a mock instead of the lock service': async () => {
    const module = await compile(OrderService)
      .useMocker(() => ({}))
      .compile();
    return module.get(OrderService).ship();
  },
  'a test of the whole application': () => {
    const redlock = RedlockModule.forRoot({ masters: ['redis://127.0.0.1:1'], connectTimeout: '500ms' });
    return Test.createTestingModule({ imports: [redlock] })
      .setLogger(SILENT)
      .compile();
  },
};

async function messageOf(broken: () => Promise<unknown>): Promise<string> {
  const error = await broken().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  const message = error instanceof Error ? error.message : '';
  // The page shows the usual port and the default, and the test a port on which nothing listens.
  return message.replaceAll('127.0.0.1:1', '127.0.0.1:6379').replace('500 ms', '5000 ms');
}

describe('The page about testing', () => {
  it.each(Object.keys(BROKEN))('quotes what breaks %s word for word', async (name) => {
    const message = await messageOf(BROKEN[name]!);
    const quotation = quoted[Object.keys(BROKEN).indexOf(name)]!;
    expect(message).toContain(quotation);
  });

  it('quotes the message of Nest about an injected LockService', async () => {
    const [message] = (await messageOf(() => compile(Injecting).compile())).split('\n');
    expect(page.prose.replace(/\s+/g, ' ')).toContain(message!.replace('Injecting', 'OrderService'));
  });
});
