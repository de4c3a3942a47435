import { describeReply } from '../errors.js';
import type { MasterReply, MasterRequest, RefusedReply } from '../master.interface.js';

/** The requests that write for a lock. */
const WRITING: readonly MasterRequest['op'][] = ['acquire', 'extend', 'probe'];
/** Errors that any key would get: no memory, a replica, a failing disk, too few replicas, no login. */
const CODES: readonly string[] = ['OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'NOAUTH'];
/** A missing permission for a command, and not for one key. The second wording is that of Redis 7.0. */
const COMMAND = /\bto run the\b|\bcan't run\b/;

/** Remembers whether a master refuses what locks need, from its answers. It is sent requests all the same. */
export class Refusal {
  private last: RefusedReply | undefined;

  /** Why no lock can be taken there; `undefined` if nothing is known against it. */
  get reason(): string | undefined {
    return this.last && describeReply(this.last);
  }

  /** Returns whether the answer has changed whether the master refuses. */
  note({ op }: MasterRequest, answer: MasterReply): boolean {
    const { last } = this;
    if (answer.kind === 'refused' && WRITING.includes(op) && concernsMaster(answer)) this.last = answer;
    else if (last && answer.kind === 'granted' && isDisproof(op, last)) this.last = undefined;
    return (last === undefined) !== (this.last === undefined);
  }
}

/**
 * Whether a grant shows that the master refuses no more. An extension needs no memory, and a server does not check its
 * memory for an acquisition that follows a release in one script. A probe is always checked.
 */
function isDisproof(op: MasterRequest['op'], { code }: RefusedReply): boolean {
  return op === 'probe' || (op === 'acquire' && code !== 'OOM');
}

function concernsMaster({ code, reason }: RefusedReply): boolean {
  return CODES.includes(code) || (code === 'NOPERM' && COMMAND.test(reason));
}
