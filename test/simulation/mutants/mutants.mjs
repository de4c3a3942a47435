// Faults in the algorithm that the properties must detect. Each fault replaces strings in a file. A string that does
// not occur exactly once is an error, so that a mutant moves with its code. The string `@mutant name` stands for the
// whole line that ends in `// @mutant name`, whatever that line contains.
//
// If `model` says so, the fault is in a script. The simulated servers do not run Lua, so the model of the script gets
// the same fault (`modelFaults` in profiles.ts). The script changes too, so that a moved string is noticed.

const TENURE = 'lib/core/tenure.ts';
const FENCING = 'lib/core/fencing.ts';
const OPERATIONS = 'lib/redis/operations-script.ts';
const USUAL = 'lib/redis/usual-script.ts';
const MASTER = 'lib/redis/redis-master.ts';
const GUARD = 'lib/redis/guard/guard-group.ts';
const WRITER = 'lib/redis/guard/marker-writer.ts';
const IDENTITY = 'lib/redis/guard/data-identity.ts';

/** Name, file, and pairs of string and replacement. */
export const MUTANTS = [
  ['start time taken after replies', TENURE, ['this.since = started;', 'this.since = this.clock.read();']],
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
    MASTER,
    [
      'return this.data?.quarantineAt(this.clock.read());',
      'return undefined;',
      'if (!this.data || this.data.votes) {',
      'if (this.closing === undefined) {',
    ],
  ],
  [
    'NOSCRIPT taken as reload',
    MASTER,
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
  ['draw for any holder', OPERATIONS, [`if call('GET', key) ~= token then return 0 end`, ''], 'model'],
  [
    'larger draws not adopted',
    FENCING,
    [
      '@mutant larger-draws-not-adopted',
      'this.largest ||= Math.max(0, ...answers);',
      'answer === this.largest',
      'answer >= this.largest',
    ],
  ],
  ['token of one master', FENCING, ['if (repeated >= this.quorum)', 'if (repeated > 0)']],
  ['floor ignored', FENCING, ['Math.max(floor, this.largest)', 'Math.max(0 * floor, this.largest)']],
  [
    'nothing drawn',
    FENCING,
    ['const isFirst = !this.drawn.has(master) || this.drawn.get(master) !== data;', 'const isFirst = false;'],
  ],
  [
    'wake-up trusted without the timer',
    'lib/core/acquisition.ts',
    ['this.waiter.pause(Math.min(look, expiry))', 'this.waiter.pause()'],
  ],
  [
    'token reused across attempts',
    'lib/core/acquisition.ts',
    ['token: random.token()', 'token: ((this.names as { reused?: string }).reused ??= random.token())'],
  ],
  [
    'marker not looked at',
    USUAL,
    ["marked = marker == '' or pcall_redis('HGET', marker, 'nonce') == nonce", 'marked = true'],
    'model',
  ],
  [
    'clock of a server not looked at',
    MASTER,
    ['return this.guard.sampled(this.data, sent, millisecondsFrom(time));', 'return true;'],
  ],
  [
    'quarantine ended by the wall clock',
    WRITER,
    ['asked.monotonic - since.monotonic > marker.wait', 'asked.wall - since.wall > marker.wait'],
  ],
  ['quarantine too short', GUARD, ['return Math.ceil(ttl +', 'return Math.ceil(0.1 * ttl + 0 *']],
  [
    'another run taken for known data',
    IDENTITY,
    [`if (marker.run === run && marker.replid === replid) return 'known';`, `return 'known';`],
  ],
  ['lost data taken for known data', IDENTITY, [`if (!marker) return 'unknown';`, `if (!marker) return 'renamed';`]],
  ['a new marker votes at once', IDENTITY, ['this.votes = !isYoung;\n    if (!isYoung) return;', 'this.votes = true;']],
  [
    'no veto',
    WRITER,
    [
      'const owesVeto = group.isEngaged &&',
      'const owesVeto = group.quorum < 0 &&',
      'this.group.isEngaged ? 1 : 0',
      'this.group.quorum < 0 ? 1 : 0',
    ],
  ],
  ['early vote too early', 'lib/redis/guard/early-vote.ts', ['const EARLY_AFTER = 2_500;', 'const EARLY_AFTER = 1;']],
  [
    'nothing released',
    TENURE,
    ['if (this.reached.length === 0) return Promise.resolve();', 'return Promise.resolve();'],
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

/** Returns the contents of the file with the fault. */
export function mutate({ name, file, changes }, text) {
  let mutated = text;
  for (let i = 0; i < changes.length; i += 2) {
    const pattern = patternOf(changes[i]);
    const found = mutated.match(pattern)?.length ?? 0;
    if (found !== 1) throw new Error(`mutant "${name}": ${JSON.stringify(changes[i])} is ${found} times in ${file}`);
    mutated = mutated.replace(pattern, () => changes[i + 1]);
  }
  return mutated;
}

/** Matches a literal string, or the line with an anchor. */
function patternOf(text) {
  const literal = text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  return text.startsWith('@mutant ') ? new RegExp(`^.* // ${literal}$`, 'gm') : new RegExp(literal, 'g');
}
