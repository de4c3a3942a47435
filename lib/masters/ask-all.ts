import type { Clock } from '../redlock/clock.js';
import { timedOut } from '../redlock/server.js';
import { TimeLimit } from '../redlock/time-limit.js';
import type { Master, MasterReply, MasterRequest } from './master.interface.js';

export interface MasterAnswer {
  readonly master: string;
  readonly answer: MasterReply;
}

interface Inquiry<M extends Pick<Master, 'name' | 'ask'>> {
  readonly clock: Clock;
  // Milliseconds after which a master that has not answered counts as timed out.
  readonly timeout: number;
  readonly masters: readonly M[];
  // A reply for a master that need not be asked.
  readonly request: MasterRequest | ((master: M) => MasterRequest | MasterReply);
  // Sees each answer when it arrives, and returns what counts.
  readonly judge?: (answer: MasterReply, master: M) => MasterReply;
  // No further answer can change the result.
  readonly isDecided?: (answers: readonly MasterReply[]) => boolean;
}

// Unlike a quorum call, this waits for every answer, unless `isDecided` says otherwise.
export function askAll<M extends Pick<Master, 'name' | 'ask'>>(inquiry: Inquiry<M>): Promise<readonly MasterAnswer[]> {
  const { masters, request, clock, timeout, judge, isDecided } = inquiry;
  return new Promise((resolve) => {
    const answers = new Map<M, MasterReply>();
    const finish = (): void => {
      limit.cancel();
      const missing = timedOut(limit.blocked);
      resolve(masters.map((master) => ({ master: master.name, answer: answers.get(master) ?? missing })));
    };
    const limit = new TimeLimit({ clock, limit: timeout, end: finish });
    const count = (master: M, answer: MasterReply): void => {
      answers.set(master, judge ? judge(answer, master) : answer);
      if (answers.size === masters.length || isDecided?.([...answers.values()])) finish();
    };
    for (const master of masters) {
      const asked = typeof request === 'function' ? request(master) : request;
      if ('op' in asked) master.ask(asked, (answer) => count(master, answer));
      else count(master, asked);
    }
  });
}
