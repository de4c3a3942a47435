import { readFile } from 'node:fs/promises';
import { type Meter } from '@opentelemetry/api';
import { describe, expect, it } from '@jest/globals';
import * as api from 'nestjs-redlock';
import { StaleTokenError } from 'nestjs-redlock/sql';
import { parseDuration } from '../../lib/settings/duration.js';
import { resolveSettings } from '../../lib/settings/settings.js';
import type { MasterReply, MasterRequest } from '../../lib/masters/master.interface.js';
import { instrumentsOf } from '../../lib/opentelemetry/instruments.js';

const readPage = (name: string): Promise<string> => readFile(name, 'utf8');
const optionsPage = await readPage('docs/options.md');
const errorsPage = await readPage('docs/errors.md');
const operationsPage = await readPage('docs/operations.md');

const isRule = (line: string | undefined): boolean => /^\|[ :-]+\|/.test(line ?? '');

/** The body rows of the tables between a heading of a page and the next heading. */
function tableUnder(page: string, heading: string): string[][] {
  const [, section = ''] = page.split(`# ${heading}\n`);
  const lines = section.split(/\n##+ /)[0]!.split('\n');
  const rows = lines.filter((line, i) => line.startsWith('|') && !isRule(line) && !isRule(lines[i + 1]));
  return rows.map((row) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

/** The first words and the rest of each item of a list between a heading of a page and the next heading. */
function listUnder(page: string, heading: string): [string, string][] {
  const [, section = ''] = page.split(`# ${heading}\n`);
  const text = section.split(/\n##+ /)[0]!.replace(/\n {2,}/g, ' ');
  return [...text.matchAll(/^- (.*?): (.*)$/gm)].map(([, head, rest]) => [head!, rest!]);
}

const inCode = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** All events of an observer. Does not compile unless it is complete. */
const EVENTS: Record<keyof api.LockObserver, true> = {
  acquiring: true,
  elections: true,
  firstStatus: true,
  jobs: true,
  lockInDanger: true,
  lockLost: true,
  masterAnswered: true,
  masterAnswersAgain: true,
  masterAtRisk: true,
  masterRiskEnded: true,
  masterFound: true,
  masterLost: true,
  masterQuarantined: true,
  masterRefused: true,
  masterSilent: true,
  masterVotesAgain: true,
  quorumLost: true,
  quorumRestored: true,
  skipped: true,
  started: true,
  stopped: true,
  waiting: true,
  woken: true,
};

const OPERATIONS: Record<MasterRequest['op'], true> = {
  ...{ acquire: true, pick: true, extend: true, draw: true, release: true, leave: true, inspect: true, probe: true },
  ...{ 'defer-readers': true, 'open-state': true, 'write-state': true, 'read-state': true },
};

const ANSWERS: Record<MasterReply['kind'] | 'not-asked', true> = {
  ...{ granted: true, held: true, gone: true, unreachable: true, timeout: true, refused: true, quarantined: true },
  'not-asked': true,
};

const ERRORS = [
  new StaleTokenError('', 41, 57),
  new api.LockNotAcquiredError([], [], 0, undefined),
  new api.QuorumUnavailableError('', [], [], 2, 3),
  new api.LockLostError([], 'expired'),
  new api.LockReentryError([], [], 'nested'),
  new api.LockServiceStoppedError([]),
  new api.RedlockConfigError('', undefined, ''),
];

describe('The documentation', () => {
  // Those that are values are compared where the page is written.
  it('states the defaults that are computed', () => {
    const settings = resolveSettings({}, 3);
    const rows = ['Everyday options', 'Rare options'].flatMap((heading) => tableUnder(optionsPage, heading));
    const shown = Object.fromEntries(rows.map(([name, fallback]) => [inCode(name!)[0]!, fallback!]));
    expect(parseDuration('maxHold', inCode(shown.maxHold!)[0]!.slice(1, -1), 0)).toBe(settings.maxHold);
    expect([shown.maxTtl, settings.maxTtl]).toEqual(['the ttl', settings.ttl]);
    expect(shown.masterTimeout).toMatch(new RegExp(`^${settings.masterTimeout} ms`));
    expect([resolveSettings({}, 2).restartGuard, settings.restartGuard]).toEqual([false, true]);
    expect(shown.restartGuard).toBe('`true` for three single servers or more');
  });

  it('lists all errors with their codes and statuses', () => {
    const classes = [...Object.values(api), StaleTokenError].filter(
      (value) => typeof value === 'function' && value.prototype instanceof api.LockError,
    );
    expect(new Set(ERRORS.map(({ constructor }) => constructor))).toEqual(new Set(classes));
    const reported = listUnder(errorsPage, 'Error classes').map(([head]) => [
      ...inCode(head),
      /\b\d{3}\b/.exec(head)?.[0],
    ]);
    expect(reported.sort()).toEqual(
      ERRORS.map(({ name, code, statusCode }) => [name, code, String(statusCode)]).sort(),
    );
  });

  it('lists all metrics with their kinds', () => {
    const made: string[] = [];
    const maker =
      (kind: string) =>
      (name: string, { unit }: { unit?: string }) => {
        made.push(`${name}: ${unit === 's' ? `${kind}, s` : kind}`);
      };
    instrumentsOf({
      createHistogram: maker('histogram'),
      createCounter: maker('counter'),
      createUpDownCounter: maker('up-down counter'),
      createObservableGauge: maker('gauge'),
    } as unknown as Meter);
    const reported = listUnder(operationsPage, 'Metrics and spans').flatMap(([head]) => {
      const kind = /\((.*)\)$/.exec(head)?.[1];
      return kind === undefined ? [] : inCode(head).map((each) => `${each}: ${kind.replace('counters', 'counter')}`);
    });
    expect(reported.sort()).toEqual(made.sort());
  });

  it('lists what a metric of a master says of requests and answers', () => {
    const listed = (attribute: string): string[] => {
      const [, line = ''] = operationsPage.split(`- \`${attribute}\`:`);
      return inCode(line.split('\n- ')[0]!);
    };
    expect(listed('redlock.operation')).toEqual(expect.arrayContaining(Object.keys(OPERATIONS)));
    expect(listed('redlock.answer').sort()).toEqual(Object.keys(ANSWERS).sort());
  });

  it('lists all events of an observer', () => {
    const reported = listUnder(operationsPage, 'Events and log lines').flatMap(([head]) => inCode(head));
    expect(reported.sort()).toEqual(Object.keys(EVENTS).sort());
  });
});
