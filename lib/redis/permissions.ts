import { Keyspace } from '../settings/keyspace.js';
import type { MasterReply, RefusedReply } from '../masters/master.interface.js';

// In a form that changes nothing.
export type Trial = readonly [command: string, ...args: (string | number)[]];

// No lock has these names.
interface TrialNames {
  readonly key: string;
  readonly channel: string;
  readonly marker?: string;
}

// The only subcommand that is needed of each of these commands.
const SUBCOMMANDS: Readonly<Record<string, string>> = { script: 'load', pubsub: 'numsub' };

// Each is on an unused name, or with arguments that the command itself refuses, since a server checks the permissions
// before the arguments. `ACL DRYRUN` would need more permissions than a lock.
export function trialsInScripts({ key, channel, marker }: TrialNames): Trial[] {
  return [
    // The command refuses both options together.
    ['set', key, '', 'NX', 'XX'],
    ...['get', 'del', 'exists', 'pttl'].map((command): Trial => [command, key]),
    ['pexpire', key, 1],
    ['zadd', key, 'XX', 0, 'absent'],
    ['zrem', key, 'absent'],
    ['zcard', key],
    ['zscore', key, 'absent'],
    ['zrange', key, 0, 0],
    ['zremrangebyscore', key, 0, 0],
    ['pexpireat', key, 1],
    ['mget', key],
    ['hget', marker ?? key, 'from'],
    ['hmget', marker ?? key, 'run'],
    // The command refuses a field without a value.
    ['hset', marker ?? key, 'run', '', 'from'],
    ['publish', channel, ''],
    ['pubsub', 'NUMSUB', channel],
    ['time'],
    ['info', 'server'],
  ];
}

export function ruleFor(command: string): string {
  const subcommand = SUBCOMMANDS[command];
  return `+${command}${subcommand === undefined ? '' : `|${subcommand}`}`;
}

// `undefined` if the refusal concerns a command and not names.
export function ruleForNames({ reason }: Pick<RefusedReply, 'reason'>, keyPrefix: string): string | undefined {
  const pattern = `${literally(keyPrefix)}*`;
  if (/\bchannels?\b/.test(reason)) return `&${pattern}`;
  return /\bkeys?\b/.test(reason) ? `~${pattern}` : undefined;
}

// As a pattern of SCAN or of an ACL rule, the result matches only the text itself.
export function literally(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&');
}

export function trialNames(keyspace: Keyspace, id: string): TrialNames {
  return { key: keyspace.trialOf(id), channel: keyspace.channelOf(id) };
}

// Without the first ones, no lock can be taken; without the others, none where the restart guard is on.
const VITAL = ['+set', '+evalsha'];
const VITAL_FOR_GUARD = ['+hget', '+time'];
// Without these, the first call over a connection fails where the restart guard is on.
const VITAL_FIRST = [...VITAL_FOR_GUARD, '+hmget', '+hset', '+info'];

const POLLING = 'waiters poll';
const NOT_SHARED = 'no lock can be shared';
const FIRST = 'the restart guard needs it for the next connection';
// Of permissions that the lock itself does not need.
const CONSEQUENCES: Readonly<Record<string, string>> = {
  '+get': 'locks are not released before they expire',
  '+del': 'locks are not released before they expire',
  '+exists': 'locks are not handed over',
  '+pexpire': 'no lock can be extended',
  '+pttl': 'waiters are not told how long a lock is held',
  ...Object.fromEntries(['+publish', '+subscribe', '+pubsub|numsub', '+zscore'].map((rule) => [rule, POLLING])),
  ...Object.fromEntries(['+zadd', '+zrem', '+zcard', '+zrange'].map((rule) => [rule, `${POLLING}, ${NOT_SHARED}`])),
  '+zremrangebyscore': NOT_SHARED,
  '+pexpireat': NOT_SHARED,
  '+mget': 'a permit is taken only if the slot that is tried first is free',
  '+hget': 'no fencing token can be drawn',
  '+hset': `no fencing token can be drawn, ${FIRST}`,
  '+hmget': FIRST,
  '+info': FIRST,
  '+eval': 'no state can be read',
  '+script|load': 'the first request after each connection is sent twice',
};

interface MissingPermissionsContext {
  readonly keyPrefix: string;
  readonly marker: string | undefined;
  readonly run: (trials: readonly Trial[]) => Promise<unknown>;
  // `undefined` for an error of the connection. The refusal contains no secrets.
  readonly refusalOf: (error: unknown) => RefusedReply | undefined;
}

// An error inside a script does not say which command it was, and most commands of queues may fail without one: so the
// commands are tried one by one, after a refusal and with each probe.
export class MissingPermissions {
  private tried: readonly string[] = [];
  // What was refused outside of scripts: such commands cannot be tried without an effect, and are not tried on purpose.
  private readonly met = new Map<string, string>();
  private current: Promise<void> | undefined;
  private isMarkerDenied = false;

  constructor(private readonly context: MissingPermissionsContext) {}

  // For commands that cannot be tried. `error` is `undefined` for one that was carried out.
  note(command: string, error: unknown): void {
    const refusal = this.context.refusalOf(error);
    if (refusal?.code === 'NOPERM') this.met.set(command, this.ruleOf(command, refusal));
    else if (error === undefined) this.met.delete(command);
  }

  async explain(refusal: RefusedReply): Promise<RefusedReply> {
    await this.tryAll();
    const named = /\bto run the '([\w|-]+)' command/.exec(refusal.reason)?.[1];
    const { rules } = this;
    if (named !== undefined) {
      const rule = ruleFor(named);
      return this.refusal(rules.includes(rule) ? rules : [rule, ...rules], refusal);
    }
    const forNames = ruleForNames(refusal, this.context.keyPrefix);
    if (forNames !== undefined && !this.isMarkerDenied) {
      return { ...refusal, reason: `${refusal.reason.replace(/\.$/, '')}: ${adviceOn([forNames])}` };
    }
    return rules.length > 0 ? this.refusal(rules, refusal) : refusal;
  }

  // Refused without a permission that each lock needs, else with those that are missing.
  async judge(answer: MasterReply): Promise<MasterReply> {
    await this.tryAll();
    const { rules } = this;
    if (this.isVital(rules)) return this.refusal(rules);
    const lacks = rules.length === 0 ? '' : `NOPERM ${reasonOf(rules, false)}`;
    // A probe also deletes its key, which a lock that is taken does not need.
    if (answer.kind === 'refused' && answer.isVital === false) return { kind: 'granted', lacks };
    return answer.kind === 'granted' ? { ...answer, lacks } : answer;
  }

  // Replaces an error inside a script, which does not name the permission.
  async named(error: unknown): Promise<unknown> {
    const refusal = this.context.refusalOf(error);
    if (refusal?.code !== 'NOPERM') return error;
    // In a script, Redis 8 names the permission behind the code ERR.
    if (/\bto run the\b/.test(refusal.reason)) return replyError(refusal.reason);
    await this.tryAll();
    const { rules } = this;
    const [rule] = rules.filter((each) => VITAL_FIRST.includes(each));
    const cause =
      rule === undefined ? reasonOf(rules, true) : `this user has no permissions to run the '${rule.slice(1)}' command`;
    return rules.length === 0 ? error : replyError(cause);
  }

  // Joins a trial without an answer: a server answers in order, so it tries after what it has just refused.
  private tryAll(): Promise<void> {
    return (this.current ??= this.tryNow());
  }

  private async tryNow(): Promise<void> {
    const { keyPrefix, marker, run, refusalOf } = this.context;
    const names = { ...trialNames(new Keyspace(keyPrefix), 'permissions'), ...(marker !== undefined && { marker }) };
    const trials = trialsInScripts(names);
    try {
      const failed = (await run(trials)) as readonly string[];
      // At once: the answer to a request after the trial may have come in the same packet.
      this.current = undefined;
      this.met.delete('eval');
      this.isMarkerDenied = false;
      this.tried = failed.flatMap((line) => {
        const [, number = '', message = ''] = /^(\d+) (.*)$/s.exec(line) ?? [];
        const [command = '', name] = trials[Number(number) - 1] ?? [];
        const refusal = refusalOf(Object.assign(new Error(message), { name: 'ReplyError' }));
        if (refusal?.code !== 'NOPERM') return [];
        const rule = this.ruleOf(command, refusal);
        if (rule.startsWith('~') && name === marker) this.isMarkerDenied = true;
        return [rule];
      });
    } catch (error) {
      this.current = undefined;
      const refusal = refusalOf(error);
      if (refusal?.code === 'NOPERM') this.note('eval', error);
    }
  }

  private ruleOf(command: string, refusal: RefusedReply): string {
    const isAboutCommand = /\bto run the\b|\bcan't run\b/.test(refusal.reason);
    return (isAboutCommand ? undefined : ruleForNames(refusal, this.context.keyPrefix)) ?? ruleFor(command);
  }

  private get rules(): readonly string[] {
    return [...new Set([...this.tried, ...this.met.values()])];
  }

  private isVital(rules: readonly string[]): boolean {
    const { marker } = this.context;
    const vital = marker === undefined ? VITAL : [...VITAL, ...VITAL_FOR_GUARD];
    return this.isMarkerDenied || rules.some((rule) => vital.includes(rule));
  }

  private refusal(rules: readonly string[], { isAtGate = false }: Partial<RefusedReply> = {}): RefusedReply {
    const isVital = isAtGate || this.isVital(rules);
    const reason = reasonOf(rules, isVital);
    return { kind: 'refused', code: 'NOPERM', reason, isVital, ...(isAtGate && { isAtGate }) };
  }
}

function replyError(reason: string): Error {
  return Object.assign(new Error(`NOPERM ${reason}`), { name: 'ReplyError' });
}

function reasonOf(rules: readonly string[], isVital: boolean): string {
  const consequences = new Set(isVital ? [] : rules.flatMap((rule) => CONSEQUENCES[rule] ?? []));
  const effect = consequences.size === 0 ? '' : ` (${[...consequences].join('; ')})`;
  return `its user lacks the permission${rules.length === 1 ? '' : 's'} ${rules.join(' ')}${effect}: ${adviceOn(rules)}`;
}

function adviceOn(rules: readonly string[]): string {
  return `ACL SETUSER <its user> ${rules.join(' ')}`;
}
