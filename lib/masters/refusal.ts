import { describeReply } from '../redlock/errors.js';
import type { GrantedReply, MasterReply, MasterRequest, RefusedReply } from './master.interface.js';

const WRITING: readonly MasterRequest['op'][] = ['acquire', 'extend', 'probe'];
// Any key would get these errors: no memory, a replica, a failing disk, too few replicas, no login, a busy script.
const CODES: readonly string[] = ['OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'NOAUTH', 'BUSY'];
// A missing permission for a command, and not for one key. The second wording is that of Redis 7.0.
const COMMAND = /\bto run the\b|\bcan't run\b/;

// Whether a master refuses what locks need, from its answers. It is sent requests all the same.
export class Refusal {
  private last: RefusedReply | undefined;
  private lack: { readonly text: string; readonly op?: MasterRequest['op'] } | undefined;

  // `undefined` if nothing is known against it.
  get reason(): string | undefined {
    return this.last && describeReply(this.last);
  }

  // What it refuses although locks can be taken there.
  get restriction(): string | undefined {
    return this.lack?.text;
  }

  // True if the answer may have changed what the master refuses.
  note(request: MasterRequest, answer: MasterReply): boolean {
    if (answer.kind === 'refused') return this.noteRefusal(request.op, answer);
    if (answer.kind === 'quarantined') return this.noteGate();
    if (answer.kind !== 'granted' || !(this.last || this.lack || answer.lacks)) return false;
    this.noteGrant(request, answer);
    return true;
  }

  private noteRefusal(op: MasterRequest['op'], answer: RefusedReply): boolean {
    if (concernsMaster(op, answer)) this.last = answer;
    else if (answer.isVital === false) this.lack = { text: describeReply(answer) };
    else if (isForbidden(answer)) this.lack = { text: describeReply(answer), op };
    else return false;
    return true;
  }

  // The gate has answered.
  private noteGate(): boolean {
    if (!this.last?.isAtGate) return false;
    this.last = undefined;
    return true;
  }

  private noteGrant(request: MasterRequest, { lacks }: GrantedReply): void {
    if (this.last && isDisproof(request, this.last)) this.last = undefined;
    if (lacks !== undefined) this.lack = lacks === '' ? undefined : { text: lacks };
    // What nothing was found out about is permitted once the same request is granted.
    else if (this.lack?.op === request.op) this.lack = undefined;
  }
}

// An extension needs no memory, and a server does not check its memory for an acquisition that follows a release in one
// script. A shared lock needs other permissions than an exclusive one. A probe is always checked.
function isDisproof(request: MasterRequest, { code }: RefusedReply): boolean {
  if (request.op === 'probe') return true;
  return request.op === 'acquire' && code !== 'OOM' && !(code === 'NOPERM' && request.sharing);
}

// An extension that is forbidden says nothing about acquisitions.
function concernsMaster(op: MasterRequest['op'], answer: RefusedReply): boolean {
  if (answer.isVital !== undefined) return answer.isVital;
  if (!WRITING.includes(op)) return false;
  return CODES.includes(answer.code) || (op !== 'extend' && isForbidden(answer));
}

function isForbidden({ code, reason }: RefusedReply): boolean {
  return code === 'NOPERM' && COMMAND.test(reason);
}
