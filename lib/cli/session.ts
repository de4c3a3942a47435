import { RequestEncoder } from '../redis/request-encoding.js';
import { SystemClock } from '../runtime/system-clock.js';
import { type MasterReport, QuorumUnavailableError, RedlockConfigError } from '../core/errors.js';
import { askAll } from '../core/acquire/quorum-call.js';
import type { KeyNames } from '../core/keyspace.js';
import type { MasterReply } from '../core/master.interface.js';
import { SystemRandom } from '../runtime/system-random.js';
import { Redlock } from '../core/redlock.js';
import { redisClient, redisMasters, type ServerMaster } from '../redis/master-source.js';
import { languageOf } from '../redis/port-language.js';
import { clusterSettings, isClusterSource } from '../redis/cluster/cluster-source.js';
import { Contact, type Failure, isFailure } from './contact.js';
import type { Context } from './context.js';
import { ClusterContact, type LockContact, ServerContact } from './lock-contact.js';

/** One master as an application uses it, and connections for commands that no application sends. */
export interface SessionMaster {
  readonly master: ServerMaster;
  readonly contact: LockContact;
}

/** All masters of a command that reads locks. Masters that an application would refuse do not count here, either. */
export class Session {
  private constructor(
    readonly redlock: Redlock,
    /** Masters that can be asked. */
    readonly members: readonly SessionMaster[],
    /** The other masters, and why they cannot be asked. */
    readonly absent: readonly MasterReport[],
  ) {}

  /** Connects to all masters, and gives up on those that do not connect within the time limit. */
  static async open({ sources, settings, timeout }: Context): Promise<Session> {
    const dependencies = {
      clock: new SystemClock(),
      random: new SystemRandom(),
      observer: {},
      encoder: new RequestEncoder(),
    };
    const masters = redisMasters('masters', sources, { ...dependencies, settings, languageOf });
    const redlock = new Redlock(masters, settings, dependencies);
    // Each answer reports what is wrong.
    await redlock.connect(timeout).catch((error: unknown) => {
      if (!(error instanceof QuorumUnavailableError || error instanceof RedlockConfigError)) throw error;
    });
    const { masters: states } = redlock.status();
    const contacts = sources.map((source, index) => {
      const option = `masters[${index}]`;
      return isClusterSource(source)
        ? new ClusterContact(clusterSettings(option, source), settings.keyPrefix, timeout)
        : new ServerContact(new Contact(redisClient(option, source), timeout), settings.keyPrefix);
    });
    const reports = await Promise.all(
      contacts.map(async (contact, index): Promise<MasterReport> => {
        const { state = 'down', reason = 'not connected' } = states[index] ?? {};
        const isPermanent = state === 'refused';
        const failure = state === 'voting' ? await contact.open() : { code: 'UNREACHABLE', reason, isPermanent };
        return { master: contact.name, answer: failure && answerOf(failure) };
      }),
    );
    const members = masters.flatMap((master, index) => {
      const contact = contacts[index];
      return contact && !reports[index]?.answer ? [{ master, contact }] : [];
    });
    return new Session(
      redlock,
      members,
      reports.filter(({ answer }) => answer),
    );
  }

  async close(): Promise<void> {
    for (const { contact } of this.members) contact.close();
    await this.redlock.close();
  }
}

/** Opens the masters for an action, and closes them even if it fails. */
export async function inSession<T>(context: Context, action: (session: Session) => Promise<T>): Promise<T> {
  const session = await Session.open(context);
  try {
    return await action(session);
  } finally {
    await session.close();
  }
}

/** Converts the failure of one command into the answer of a master. */
export function answerOf({ code, reason, isPermanent }: Failure): MasterReply {
  return code === 'UNREACHABLE'
    ? { kind: 'unreachable', reason, sent: false, ...(isPermanent && { isPermanent }) }
    : { kind: 'refused', code, reason };
}

/** What a master reports about a key, as to an application. */
export async function lookAt(
  { master }: SessionMaster,
  { keys, queues }: KeyNames,
  timeout: number,
): Promise<MasterReply | undefined> {
  const request = { op: 'inspect', keys, queues } as const;
  const [report] = await askAll({ masters: [master], request, clock: new SystemClock(), timeout });
  return report?.answer;
}

/** The value of a key and its remaining milliseconds. */
export interface Entry {
  readonly value: string;
  /** `undefined` for a key that does not expire. */
  readonly remaining: number | undefined;
}

export async function readEntry(contact: LockContact, key: string): Promise<Entry | Failure | undefined> {
  const place = contact.at(key);
  const stored = place.stored(key);
  const [value, left] = await Promise.all([place.call('GET', stored), place.call('PTTL', stored)]);
  if (isFailure(value)) return value;
  if (isFailure(left)) return left;
  if (typeof value.value !== 'string') return undefined;
  const remaining = Number(left.value);
  return { value: value.value, remaining: remaining < 0 ? undefined : remaining };
}
