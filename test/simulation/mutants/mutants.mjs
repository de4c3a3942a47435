// Faults in the algorithm that the properties must notice. Each is a change of the text of a file; a text that is not
// found exactly once is an error, so that code that moves takes its mutants along.
//
// Where `model` says so, the fault is in a script. The simulated servers do not run Lua: the model of the script gets the
// same fault (`modelFaults` in profiles.ts), and the text is changed, too, so that it is noticed when it moves.

const TENURE = 'lib/core/tenure.ts';
const OPERATIONS = 'lib/redis/operations-script.ts';

/** name, file, and pairs of what is replaced by what */
export const MUTANTS = [
  [
    'start time taken after replies',
    TENURE,
    ['Ballot): void {\n    this.believe(started, ttl);', 'Ballot): void {\n    this.believe(this.clock.read(), ttl);'],
  ],
  [
    'elapsed ignored',
    TENURE,
    ['this.validity - elapsedBetween(this.since, now)', 'this.validity - 0 * elapsedBetween(this.since, now)'],
  ],
  [
    'drift ignored',
    TENURE,
    ['return ttl - driftOf(this.settings, ttl);', 'return ttl + 0 * driftOf(this.settings, ttl);'],
  ],
  ['quorum minus one', 'lib/core/quorum.ts', ['Math.floor(masters / 2) + 1', 'Math.max(1, Math.floor(masters / 2))']],
  ['unconditional delete', OPERATIONS, ['elseif owner == token or not owner then', 'else'], 'model'],
  [
    'release only to granters',
    'lib/core/quorum.ts',
    [
      'mayHaveReached(this.answers[index])',
      `this.answers[index]?.kind === 'granted'`,
      'every(mayHaveReached)',
      'every(() => false)',
    ],
  ],
  [
    'extension without owner check',
    OPERATIONS,
    ['longest_hold(keys, token)\n  if longest', 'FREE\n  if longest'],
    'model',
  ],
  [
    'extension counted after the old validity',
    TENURE,
    [`ballot.outcome === 'granted' && this.remaining > 0;`, `ballot.outcome === 'granted';`],
  ],
  ['heal after the deadline', 'lib/core/lease.ts', ['if (!this.isHeldAt(now)) return;', 'if (this.isOver) return;']],
  [
    'quarantined votes counted',
    'lib/redis/recognition.ts',
    ['return this.incarnation?.quarantined;', 'return undefined;'],
  ],
  [
    'NOSCRIPT taken as reload',
    'lib/redis/redis-master.ts',
    [
      'if (isUnknownScript(error)) notKnown(asked, answer);',
      `if (isUnknownScript(error)) this.run(asked, 'eval', notKnown);`,
    ],
  ],
  [
    'wall clock only',
    'lib/core/clock.ts',
    ['Math.max(to.monotonic - from.monotonic, to.wall - from.wall, 0)', 'Math.max(to.wall - from.wall, 0)'],
  ],
  [
    'monotonic only across a suspend',
    'lib/core/clock.ts',
    ['Math.max(to.monotonic - from.monotonic, to.wall - from.wall, 0)', 'Math.max(to.monotonic - from.monotonic, 0)'],
  ],
  ['unconditional fence write-back', OPERATIONS, [`if call('GET', key) ~= token then return 0 end`, ''], 'model'],
  [
    'larger answers not adopted',
    'lib/core/fencing.ts',
    [
      'let largest = token;',
      'let largest = token || Math.max(...answers);',
      'largest = Math.max(largest, answer);',
      'largest ||= answer;',
      'answer === largest',
      'answer >= largest',
    ],
  ],
  [
    'wake-up trusted without the timer',
    'lib/core/acquisition.ts',
    ['this.waiter.pause(Math.min(look, expiry))', 'this.waiter.pause()'],
  ],
  [
    'token reused across attempts',
    'lib/core/acquisition.ts',
    ['this.names, random.token()', 'this.names, ((this.names as { reused?: string }).reused ??= random.token())'],
  ],
  [
    'marker not looked at',
    'lib/redis/usual-script.ts',
    ["marked = marker == '' or pcall_redis('HGET', marker, 'nonce') == nonce", 'marked = true'],
    'model',
  ],
  [
    'clock of a server not looked at',
    'lib/redis/recognition.ts',
    ['return jump > 0;', 'return false;', 'if (jump > 0) this', 'if (jump < 0) this'],
  ],
  [
    'quarantine ended by the wall clock',
    'lib/redis/incarnation.ts',
    [
      'this.clock.read().monotonic - monotonic',
      'Math.max(this.clock.read().monotonic - monotonic, this.clock.read().wall - wall)',
      'passedSince({ monotonic }: Instant)',
      'passedSince({ monotonic, wall }: Instant)',
    ],
  ],
  [
    'sent again after its release',
    TENURE,
    ['withdraw(): void {\n    if (this.request) this.request.withdrawn = true;', 'withdraw(): void {'],
  ],
  [
    'an extension does not withdraw the acquisition',
    TENURE,
    ['if (this.request) this.request.withdrawn = true;\n    this.request = request;', 'this.request = request;'],
  ],
  ['no gate, nothing given back', 'lib/core/acquisition.ts', [`!gate || step !== 'gate'`, `step !== 'gate'`]],
  [
    'last come, first served',
    'lib/core/linked-list.ts',
    [
      'return this.head?.value;',
      'return this.tail?.value;',
      '!== undefined && this.before === undefined',
      '!== undefined && this.after === undefined',
    ],
  ],
  [
    'timer of a lock kept',
    'lib/core/lease.ts',
    [
      'private end(now: Instant): Promise<void> {\n    this.timer?.cancel();',
      'private end(now: Instant): Promise<void> {',
    ],
  ],
  [
    'listener of a caller kept',
    'lib/core/waiter.ts',
    [`if (this.abort) this.signal?.removeEventListener('abort', this.abort);`, ''],
  ],
  [
    'budget counted from each attempt',
    'lib/core/waiter.ts',
    ['Math.max(0, this.budget - this.waited)', 'Math.max(0, this.budget * 1.1 - this.waited)'],
  ],
].map(([name, file, changes, model]) => ({ name, file, changes, isInModel: model !== undefined }));

/** The text of a file with the fault in it. */
export function mutate({ name, file, changes }, text) {
  let mutated = text;
  for (let i = 0; i < changes.length; i += 2) {
    const found = mutated.split(changes[i]).length - 1;
    if (found !== 1) throw new Error(`mutant "${name}": ${JSON.stringify(changes[i])} is ${found} times in ${file}`);
    mutated = mutated.replace(changes[i], () => changes[i + 1]);
  }
  return mutated;
}
