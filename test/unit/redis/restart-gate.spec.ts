import { beforeEach, describe, expect, it } from '@jest/globals';
import type { GateReport } from '../../../lib/redis/replies.js';
import { RestartGate } from '../../../lib/redis/restart-gate.js';
import { TestClock } from '../support/test-clock.js';

let clock: TestClock;
let gate: RestartGate;

beforeEach(() => {
  clock = new TestClock();
  gate = new RestartGate(clock);
});

const passed: GateReport = { run: 'run', from: '5', wait: 0, cause: '' };

function waiting(cause = '', wait = 9_800): GateReport {
  return { run: 'run', from: '5', wait, cause };
}

describe('The reason for which a server waits', () => {
  it.each([
    ['a restart that the marker shows', 'restart', 'after a restart'],
    ['no marker', 'new', 'because it is new'],
    ['a marker that another process has written', '', 'because it is new, or was restarted'],
  ])('is, on the first connection, by %s', (_, cause, reason) => {
    gate.noteReport('run', waiting(cause));
    expect(gate.quarantine).toEqual({ reason: `waits 9.8 s ${reason}`, remaining: 9_800 });
  });

  it('is a restart if the run is another one, whichever process wrote the marker, or if the data is gone as well', () => {
    for (const cause of ['', 'restart', 'new']) {
      gate.noteReport('run', passed);
      gate.noteReport('other', waiting(cause));
      expect(gate.quarantine?.reason).toBe('waits 9.8 s after a restart');
    }
  });

  it('is a loss of its data if a server that ran on has no marker any more', () => {
    gate.noteReport('run', passed);
    gate.noteReport('run', waiting('new'));
    expect(gate.quarantine?.reason).toBe('waits 9.8 s because its data was lost');
  });

  it('stays the same over the next connection, and until a call has passed', () => {
    gate.noteReport('run', waiting('new'));
    gate.noteReport('run', waiting('', 5_000));
    gate.shut(4_000);
    expect(gate.quarantine).toEqual({ reason: 'waits 4.0 s because it is new', remaining: 4_000 });
    gate.pass('5');
    gate.shut(3_000);
    expect(gate.quarantine?.reason).toBe('waits 3.0 s because its data was lost');
  });
});

// Protocol 8.6
describe('What is shown of a quarantine', () => {
  it('ends by the clock of this process, or as soon as a call passes', async () => {
    gate.noteReport('run', waiting('new', 100));
    await clock.advance(40);
    expect([gate.isShut, gate.quarantine?.remaining]).toEqual([true, 60]);
    await clock.advance(60);
    expect([gate.isShut, gate.quarantine]).toEqual([false, undefined]);
    gate.shut(100);
    gate.pass('5');
    expect([gate.isShut, gate.quarantine]).toEqual([false, undefined]);
  });

  it('has a marker only while the server votes, over this connection', () => {
    gate.noteReport('run', { ...passed, from: '7' });
    expect(gate.marker).toBe('run-7');
    gate.shut(100);
    expect(gate.marker).toBeUndefined();
    gate.pass('8');
    expect(gate.marker).toBe('run-8');
    gate.forget();
    expect(gate.marker).toBeUndefined();
    gate.noteReport('run', waiting('new'));
    expect(gate.marker).toBeUndefined();
  });
});
