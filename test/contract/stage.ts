import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import type { Master, MasterReply, MasterRequest } from '../../lib/masters/master.interface.js';
import { ask } from '../support/ask.js';
import { Process } from '../support/waiting-process.js';

export const GRANTED: MasterReply = { kind: 'granted' };
export const GRANTED_AMONG_OTHERS: MasterReply = { kind: 'granted', hasWaiters: true };
export const GONE: MasterReply = { kind: 'gone' };
/** Microseconds, in the year 2199: Lua must not lose a digit. */
export const LARGE = 7_258_118_399_999_999;

/** What a contract needs of a server: masters that speak to it. */
export interface Stage {
  /** A new master for the one server. */
  master(): Master;
  end(): Promise<void>;
}

/** A master of the stage, which is connected before the tests of a suite and closed after them. */
export class OnStage<S extends Stage> {
  stage!: S;
  master!: Master;
  private readonly processes: Process[] = [];

  constructor(prepare: () => Promise<S>) {
    beforeAll(async () => {
      this.stage = await prepare();
      this.master = this.stage.master();
      await this.master.connect();
    });
    afterEach(async () => {
      for (const process of this.processes) await process.leaveAll();
    });
    afterAll(async () => {
      await Promise.all([this.master, ...this.processes.map(({ master }) => master)].map((each) => each.close()));
      await this.stage.end();
    });
  }

  /** A process that waits at the same server, through a master of its own. */
  async listening(name: string): Promise<Process> {
    const process = new Process(name, this.stage.master());
    this.processes.push(process);
    await process.master.connect();
    return await process.listen();
  }

  /** Sends requests, each of them when the one before has been answered. Resolves with the last answer. */
  readonly ask = async (...requests: readonly [MasterRequest, ...MasterRequest[]]): Promise<MasterReply> => {
    let last: MasterReply | undefined;
    for (const request of requests) last = await ask(this.master, request);
    return last!;
  };

  /** Sends requests in the same way, and expects the same answer to each of them. */
  readonly expectEach = async (answer: MasterReply, ...requests: readonly MasterRequest[]): Promise<void> => {
    for (const request of requests) expect([request.op, await ask(this.master, request)]).toEqual([request.op, answer]);
  };
}

export function expectHeldFor(answer: MasterReply, more: number, atMost: number): void {
  expect(answer).toMatchObject({ kind: 'held', remaining: expect.any(Number) });
  const { remaining = NaN } = answer as { remaining?: number };
  expect(remaining).toBeGreaterThan(more);
  expect(remaining).toBeLessThanOrEqual(atMost);
}
