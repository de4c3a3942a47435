import { type Clock, elapsedSince } from '../clock.js';
import type { MasterReport } from '../errors.js';
import { type Master, type MasterReply, type MasterRequest, TIMED_OUT } from '../master.interface.js';

interface StateRoundOptions {
  readonly masters: readonly Master[];
  readonly clock: Clock;
  /** Milliseconds after which a master that has not answered counts as timed out. */
  readonly timeout: number;
  /** The request to a master, or its answer if it need not be asked. */
  readonly requestTo: (master: Master) => MasterRequest | MasterReply;
  /** Whether no further answer can change the result. */
  readonly isDecided: (answers: readonly MasterReply[]) => boolean;
  /** Called with each answer that counts, when it arrives. */
  readonly onAnswer?: (answer: MasterReply, master: Master) => void;
  /** Whether an answer counts that arrives after the timeout, while this process was busy. */
  readonly countsLate: boolean;
}

/** One request to each master. Resolves with the answers when the result is certain, at the latest after the timeout. */
export function stateRound(options: StateRoundOptions): Promise<readonly MasterReport[]> {
  const { masters, clock, timeout, requestTo, isDecided, onAnswer, countsLate } = options;
  return new Promise((resolve) => {
    const started = clock.read();
    const answers = new Map<Master, MasterReply>();
    let isOpen = true;
    const finish = (): void => {
      if (!isOpen) return;
      isOpen = false;
      timer.cancel();
      resolve(masters.map((master) => ({ master: master.name, answer: answers.get(master) ?? TIMED_OUT })));
    };
    const timer = clock.schedule(timeout, () => clock.afterInput(finish));
    const count = (master: Master, answer: MasterReply): void => {
      const isLate = !countsLate && elapsedSince(clock, started) > timeout; // @mutant late-openings-counted
      answers.set(master, isLate ? TIMED_OUT : answer);
      if (!isLate) onAnswer?.(answer, master);
      if (answers.size === masters.length || isDecided([...answers.values()])) finish();
    };
    for (const master of masters) {
      const request = requestTo(master);
      if ('op' in request) master.ask(request, (answer) => count(master, answer));
      else count(master, request);
    }
  });
}
