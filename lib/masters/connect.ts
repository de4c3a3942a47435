import { askAll } from './ask-all.js';
import { quorumOf } from '../redlock/quorum.js';
import type { Clock, Timer } from '../redlock/clock.js';
import type { Master, MasterReply } from './master.interface.js';
import { TIMED_OUT, type UnreachableReply } from '../redlock/server.js';
import { TimeLimit } from '../redlock/time-limit.js';
import type { LockObserver } from '../operate/observer.js';
import { describeReply, type MasterReport, QuorumUnavailableError } from '../redlock/errors.js';
import { type MasterStatus, type RedlockStatus, summarize, votingIn } from '../operate/status.js';
import type { CircuitBreakerMaster } from './circuit-breaker-master.js';

// In milliseconds, or `masterTimeout` if that is longer: a check that is stricter than the calls would have a healthy process
// restarted.
const PROBE_WITHIN = 1_000;

interface ProbeContext {
  readonly key: string;
  readonly clock: Clock;
  // Of a call, in milliseconds.
  readonly masterTimeout: number;
  // What is known without a request.
  readonly status: () => RedlockStatus;
}

// What is known without a request may be as old as the last lock, and a master that answers may still refuse every
// write. Therefore, all masters write a key that no lock uses.
export async function probeMasters(
  masters: readonly CircuitBreakerMaster[],
  { key, clock, masterTimeout, status }: ProbeContext,
): Promise<RedlockStatus> {
  const asked = clock.read().monotonic;
  const answers = masters.map((master) => master.answers);
  const latencies = new Map<string, number>();
  const reports = await askAll({
    masters,
    request: { op: 'probe', keys: [key] },
    clock,
    timeout: Math.max(PROBE_WITHIN, masterTimeout),
    judge: (answer, { name }) => {
      latencies.set(name, clock.read().monotonic - asked);
      return answer;
    },
  });
  const { instance, masters: known } = status();
  return summarize(
    instance,
    known.map((each, index) => {
      // Of other requests.
      const hasAnswered = masters[index]?.answers !== answers[index];
      return statusAfter(each, reports[index]?.answer, hasAnswered, latencies.get(each.master));
    }),
  );
}

function statusAfter(
  known: MasterStatus,
  answer: MasterReply | undefined,
  hasAnswered: boolean,
  latency: number | undefined,
): MasterStatus {
  // What it answers calls since says more than one request that failed.
  if (hasAnswered && (answer?.kind === 'unreachable' || answer?.kind === 'timeout')) return known;
  switch (answer?.kind) {
    case 'granted':
    case 'held':
    case 'gone':
    case 'quarantined':
      return latency === undefined ? known : { ...known, latency };
    case 'refused':
      return isVoting(known) ? { ...known, state: 'refused', reason: describeReply(answer) } : known;
    case 'unreachable':
      return isVoting(known) ? { ...known, state: 'down', reason: answer.reason } : known;
    case 'timeout':
    case undefined:
      return isVoting(known) ? { ...known, state: 'silent', reason: describeReply(answer ?? TIMED_OUT) } : known;
  }
}

// For every other state, the known reason is more informative than the answer.
function isVoting({ state }: MasterStatus): boolean {
  return state === 'voting';
}

interface ReopenRequest {
  readonly masters: readonly CircuitBreakerMaster[];
  readonly clock: Clock;
  // Milliseconds.
  readonly timeout: number;
  readonly cancelled?: ((cancel: () => void) => void) | undefined;
}

// Before a round that would lack a quorum, because connections were lost: each is opened again, once. The round begins
// afterwards, over the connections that stand then, so that nothing is sent late.
// Protocol 4.1
export function reopened({ masters, clock, timeout, cancelled }: ReopenRequest): Promise<void> | undefined {
  let missing = quorumOf(masters.length);
  for (const master of masters) if (master.isConnected) missing--;
  if (missing <= 0) return undefined;
  const attempts = masters.flatMap((master) => master.reopened() ?? []);
  if (attempts.length === 0) return undefined;
  return new Promise((resolve) => {
    let pending = attempts.length;
    const end = (): void => {
      limit.cancel();
      resolve();
    };
    const limit = new TimeLimit({ clock, limit: timeout, end });
    cancelled?.(end);
    const note = (): void => {
      const connected = masters.filter(({ isConnected }) => isConnected).length;
      if (--pending === 0 || connected >= quorumOf(masters.length)) end();
    };
    for (const attempt of attempts) void attempt.then(note);
  });
}

// Once the outcome is certain, the other masters get this many milliseconds to connect or to fail.
const GRACE = 1_000;

interface ConnectRequest {
  readonly masters: readonly Master[];
  readonly clock: Clock;
  // Milliseconds.
  readonly timeout: number;
  // The end of the error's message.
  readonly advice?: string | undefined;
  // Given a function that ends the wait.
  readonly cancelled?: (cancel: () => void) => void;
}

interface Problem extends MasterReport {
  readonly answer: UnreachableReply;
}

// Resolves when a quorum can vote, with the problems of the others. Rejects if none can after `timeout` milliseconds,
// or at once, if waiting cannot help.
export function connectMasters(request: ConnectRequest): Promise<readonly MasterReport[]> {
  const { masters, clock, timeout, advice, cancelled } = request;
  const quorum = quorumOf(masters.length);
  return new Promise((resolve, reject) => {
    let undecided = masters.length;
    let grace: Timer | undefined;
    let done = false;

    const problems = (): Problem[] =>
      masters.flatMap((master) => {
        const answer = master.problem();
        return answer ? [{ master: master.name, answer }] : [];
      });
    const hasFailed = (missing: readonly Problem[]): boolean => isHopeless(missing, masters.length);
    const isCertain = (): boolean => {
      const missing = problems();
      return masters.length - missing.length >= quorum || hasFailed(missing);
    };
    const finish = (): void => {
      deadline.cancel();
      grace?.cancel();
      done = true;
      const missing = problems();
      if (masters.length - missing.length >= quorum) {
        resolve(missing);
        return;
      }
      const intent = hasFailed(missing) ? 'start' : `start within ${timeout} ms`;
      reject(new QuorumUnavailableError(intent, [], missing, quorum, masters.length, advice));
    };
    const retry = (): void => {
      if (done || !isCertain()) return;
      if (undecided === 0) finish();
      else grace ??= clock.schedule(GRACE, endGrace);
    };
    const endGrace = (): void => {
      grace = undefined;
      if (isCertain()) finish();
    };

    const deadline = clock.schedule(timeout, finish);
    cancelled?.(finish);
    for (const master of masters) {
      master.onReady(retry);
      void master.connect().then(() => {
        undecided--;
        retry();
      });
    }
  });
}

export function isHopeless(reports: readonly MasterReport[], masters: number): boolean {
  const permanent = reports.filter(({ answer }) => answer?.kind === 'unreachable' && answer.isPermanent);
  return masters - permanent.length < quorumOf(masters);
}

interface RoundTrip {
  readonly master: string;
  // Milliseconds.
  readonly fastest: number;
}

// Only the fastest of so many answers shows the network: others may have waited for this process or the server.
const ANSWERS = 3;
// In milliseconds.
const ANSWER_WITHIN = 5_000;
// A time limit this many times as long as the fastest answer leaves room for slower ones.
const ROOM = 3;
const STEP = 50;

// Masters that answer within `enough` milliseconds are asked once, so that this costs next to nothing where the network
// is fast. No lock uses `key`.
export async function measureRoundTrips(
  masters: readonly Master[],
  { key, clock, enough }: { readonly key: string; readonly clock: Clock; readonly enough: number },
): Promise<readonly RoundTrip[]> {
  const trips = new Map<string, number>();
  for (let i = 0; i < ANSWERS; i++) {
    const open = masters.filter((master) => !master.problem() && (trips.get(master.name) ?? Infinity) >= enough);
    if (open.length === 0) break;
    const asked = clock.read().monotonic;
    await askAll({
      masters: open,
      request: { op: 'inspect', keys: [key] },
      clock,
      timeout: ANSWER_WITHIN,
      judge: (answer, { name }) => {
        const taken = clock.read().monotonic - asked;
        const hasAnswered = answer.kind !== 'unreachable' && answer.kind !== 'timeout';
        if (hasAnswered) trips.set(name, Math.min(taken, trips.get(name) ?? Infinity));
        return answer;
      },
    });
  }
  return [...trips].map(([master, fastest]) => ({ master, fastest }));
}

export function warningOfRoundTrips(
  trips: readonly RoundTrip[],
  masterTimeout: number,
  masters: number,
): string | undefined {
  const slow = trips.filter(({ fastest }) => fastest >= masterTimeout);
  if (slow.length === 0) return undefined;
  const each = slow.map(({ master, fastest }) => `${master} in ${Math.ceil(fastest)} ms`).join(', ');
  const effect = masters - slow.length < quorumOf(masters) ? 'no lock can be taken' : 'their votes do not count';
  const enough = enoughFor(Math.max(...slow.map(({ fastest }) => fastest)));
  return `masterTimeout (${masterTimeout} ms) is too short: ${each} at the fastest, so ${effect}; set masterTimeout to '${enough}ms' or more`;
}

// In milliseconds.
export function enoughFor(fastest: number): number {
  return Math.ceil((ROOM * fastest) / STEP) * STEP;
}

type Change =
  | ('masterLost' | 'masterFound' | 'masterSilent' | 'masterAnswersAgain')
  | ('masterQuarantined' | 'masterRefused' | 'masterVotesAgain');

// Derives from the events of single masters when no lock can be taken any more, and when locks can be taken.
export class QuorumWatch implements Required<Pick<LockObserver, Change>> {
  // At the last check; `undefined` before the first status.
  private could: boolean | undefined;

  // `status` must be there before the first event.
  constructor(
    private readonly status: () => RedlockStatus,
    private readonly observer: LockObserver,
  ) {}

  get hasBegun(): boolean {
    return this.could !== undefined;
  }

  // Nothing counts as a change before: masters have to connect first. Idempotent.
  begin(): void {
    if (this.hasBegun) return;
    const status = this.status();
    this.could = status.canVote;
    this.observer.firstStatus?.(status);
  }

  readonly check = (): void => {
    if (this.could === undefined) return;
    const status = this.status();
    const { canVote, masters } = status;
    if (this.could === canVote) return;
    this.could = canVote;
    const voting = votingIn(status);
    if (canVote) this.observer.quorumRestored?.(voting, masters.length, status);
    else this.observer.quorumLost?.(voting, masters.length, status);
  };

  readonly masterLost = this.check;
  readonly masterFound = this.check;
  readonly masterSilent = this.check;
  readonly masterAnswersAgain = this.check;
  readonly masterQuarantined = this.check;
  readonly masterRefused = this.check;
  readonly masterVotesAgain = this.check;
}

// In milliseconds. A master that hangs is silent after its third unanswered request.
const CHECK_INTERVAL = 5_000;

// So that an application that takes no lock also notices a master that hangs or refuses writes, and one that works
// again. The connection to a master that hangs stays open.
export class IdleCheck {
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly ask: () => void,
  ) {}

  begin(): void {
    this.ask();
    this.timer = this.clock.schedule(CHECK_INTERVAL, () => this.begin()).unref();
  }

  end(): void {
    this.timer?.cancel();
  }
}
