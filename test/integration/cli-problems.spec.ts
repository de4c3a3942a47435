import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { cli, cliProcess, on } from '../support/cli.js';
import { type Mistake, MISTAKES, type Mistakes, OUTAGES, PASSWORD, startMistakes } from '../support/mistakes.js';

/** Answers come at once, except from a port that is spoken to in the wrong language. */
const PATIENTLY = ['--timeout', '3s'];

let mistakes: Mistakes;
beforeAll(async () => {
  mistakes = await startMistakes();
}, 60_000);
afterAll(async () => {
  await mistakes[Symbol.asyncDispose]();
});

/** Where it matters, the authority is trusted: only a new process reads that variable. */
function run(mistake: Mistake, ...args: string[]) {
  const url = mistakes.urlOf(mistake);
  const all = [...args, ...on([url]), ...PATIENTLY];
  if (!url.startsWith('rediss:') || mistake === 'an unknown authority') return cli(all);
  return cliProcess(all, { env: { NODE_EXTRA_CA_CERTS: mistakes.certificates.ca } });
}

describe('doctor', () => {
  it.each(Object.entries(MISTAKES).filter(([mistake]) => mistake !== 'an ACL without EVAL'))(
    'names the problem of a connection, and what to change: %s',
    async (mistake, reason) => {
      const { status, stdout, stderr } = await run(mistake as Mistake, 'doctor');
      const { port } = mistakes.sourceOf(mistake as Mistake);
      const [what, advice] = splitAt(reason, ': ');
      expect(stdout).toContain(`problem: 127.0.0.1:${port}: ${what}\n  -> ${advice}\n`);
      expect(stdout).toContain('1 problem: 0 of 1 masters vote, 1 must; no lock can be taken');
      expect(status).toBe(1);
      expect(stdout + stderr).not.toContain(PASSWORD);
    },
    60_000,
  );

  it.each(Object.keys(OUTAGES) as Mistake[])(
    'calls a master that may come up later unreachable: %s',
    async (mistake) => {
      const { status, stdout } = await run(mistake, 'doctor');
      expect(stdout).toMatch(/problem: \S+: it cannot be reached: (?:connect|getaddrinfo) /);
      expect(status).toBe(1);
    },
    60_000,
  );
});

describe('inspect', () => {
  it('names the same problems', async () => {
    const { status, stdout } = await run('TLS on a plain port', 'inspect', 'order:1');
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('its port does not speak TLS: use redis://');
    expect(stdout).not.toContain('unreachable');
    expect(status).toBe(1);
  }, 60_000);
});

/** The part before the last clause, which may contain the separator, and that clause. */
function splitAt(reason: string, separator: string): [string, string] {
  const advices = ['give the', 'use ', 'renew', 'put ', 'correct '];
  const start = advices.map((advice) => reason.indexOf(separator + advice)).find((index) => index >= 0) ?? 0;
  return [reason.slice(0, start), reason.slice(start + separator.length)];
}
