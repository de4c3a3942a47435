// Faults in the algorithm that the properties must notice. Each replaces whole lines of the library: those that end in an
// anchor, `// @mutant <name>` or `-- @mutant <name>` in a script. An anchor that is not in the library exactly once is an
// error, and code may be renamed and moved together with its anchors.
//
// Random schedules rarely notice the other anchors in the code of states. These specs do:
// - state-written-to-one-master, late-openings-counted: test/unit/core/state/lock-state.spec.ts;
// - ballots-not-promised, smaller-ballots-write-the-state, any-holder-opens-the-state: test/contract/state.contract.ts;
// - declared-without-nonce: test/unit/redis/guard/data-record.spec.ts;
// - new-without-a-wait: test/unit/redis/guard/guard-group.spec.ts.
//
// The simulated servers do not run Lua. A fault in a script is therefore in its model, too: in lib/memory/operations.ts or,
// where `model` says so, in the simulation (`modelFaults` in profiles.ts).

/** Where the search begins for mutants that few schedules notice. It goes on from there, however far it has to. */
const FIRST_SEEDS = {
  'extension without owner check': 330,
  'heal after the deadline': 630,
  'NOSCRIPT taken as reload': 150,
  'wall clock only': 350,
  'draw for any holder': 750,
  'an extension does not withdraw the acquisition': 1_545,
  'state of lost data counted': 3_365,
  'masters that lost the state counted': 140,
  'no objection to new masters': 2_170,
  'exclusive extension over shared holders': 300,
  'shared extension over an exclusive holder': 660,
  'wake chain stops after one': 545,
  'barriers not looked at': 145,
  'barrier on one master': 145,
  'a second address of a master judges its clock': 285,
  'parts kept from a nested call': 780,
  'nested calls are judged once': 2_050,
};

/** Name, and an object with the anchors and the lines that replace theirs. */
export const MUTANTS = [
  ['start time taken after replies', { 'start-time-taken-after-replies': 'this.since = this.context.clock.read();' }],
  [
    'elapsed ignored',
    {
      'elapsed-ignored': "return this.phase === 'released' ? 0 : this.validity - 0 * elapsedBetween(this.since, now);",
    },
  ],
  ['drift ignored', { 'drift-ignored': 'return ttl + 0 * driftOf(this.context.settings, ttl);' }],
  ['quorum minus one', { 'quorum-minus-one': 'return Math.max(1, Math.floor(masters / 2));' }],
  [
    'unconditional delete',
    { 'unconditional-delete': 'else', 'unconditional-delete-in-memory': 'const isOurs = owner !== undefined;' },
  ],
  [
    'release only to granters',
    {
      'release-only-to-granters-1':
        "return this.masters.filter((_, index) => this.answers[index]?.kind === 'granted');",
      'release-only-to-granters-2': 'if (this.answers.every(() => false)) return this.masters;',
    },
  ],
  [
    'extension without owner check',
    {
      'extension-without-owner-check': 'local longest = FREE',
      'extension-without-owner-check-in-memory': 'const isHeld = [false];',
    },
  ],
  ['heal after the deadline', { 'heal-after-the-deadline': 'if (this.isOver) return;' }],
  [
    'quarantined votes counted',
    {
      'quarantined-votes-counted-1': 'return undefined;',
      'quarantined-votes-counted-2': 'const mayVote = this.closing === undefined;',
    },
  ],
  ['NOSCRIPT taken as reload', { 'noscript-taken-as-reload': 'this.sendAgain(asked);' }],
  ['wall clock only', { 'wall-clock-only': 'return Math.max(to.wall - from.wall, 0);' }],
  [
    'monotonic only across a suspend',
    { 'monotonic-only-across-a-suspend': 'return Math.max(to.monotonic - from.monotonic, 0);' },
  ],
  ['clocks not compared', { 'clocks-not-compared': '' }],
  [
    'a minority ends a doubt',
    { 'minority-ends-a-doubt': "const isConfirmed = quorumCall.answered.some(({ kind }) => kind === 'granted');" },
  ],
  [
    'draw for any holder',
    { 'draw-for-any-holder': '', 'draw-for-any-holder-in-memory': 'const isOurs = keys.length > 0;' },
  ],
  [
    'larger draws not adopted',
    {
      'larger-draws-not-adopted': 'this.largest ||= Math.max(0, ...answers);',
      'larger-draws-not-adopted-2': 'const repeated = answers.filter((answer) => answer >= this.largest).length;',
    },
  ],
  ['token of one master', { 'token-of-one-master': 'if (repeated > 0) this.token = this.largest;' }],
  ['floor ignored', { 'floor-ignored': 'const atLeast = isFirst ? Math.max(0 * floor, this.largest) : this.largest;' }],
  ['nothing drawn', { 'nothing-drawn': 'const isFirst = false;' }],
  [
    'notification trusted without the timer',
    { 'notification-trusted-without-the-timer': 'const reason = await this.waiter.pause();' },
  ],
  [
    'token reused across attempts',
    {
      'token-reused-across-attempts':
        'const token = ((this.names as { reused?: string }).reused ??= context.random.token());',
    },
  ],
  ['marker not looked at', { 'marker-not-looked-at': 'marked = true' }, 'model'],
  ['clock of a server not looked at', { 'clock-of-a-server-not-looked-at': 'return true;' }],
  [
    'clocks of two servers compared',
    { 'clocks-of-two-servers-compared': "return this.relationOf(report) !== 'unknown';" },
  ],
  [
    'quarantine ended by the wall clock',
    {
      'quarantine-ended-by-the-wall-clock': 'const hasWaited = asked.wall - since.wall > marker.wait;',
    },
  ],
  [
    'quarantine too short',
    { 'quarantine-too-short': 'return Math.ceil(0.1 * ttl + 0 * driftOf(this.context.settings, ttl));' },
  ],
  ['another run taken for known data', { 'another-run-taken-for-known-data': "return 'known';" }],
  ['lost data taken for known data', { 'lost-data-taken-for-known-data': "if (!marker) return 'renamed';" }],
  ['durability inferred', { 'durability-inferred': "return isNext ? 'renamed' : 'unknown';" }],
  ['promoted replica of a declared master trusted', { 'promoted-replica-trusted': '' }],
  ['no objection to new masters', { 'no-objection': '' }],
  ['a new marker votes at once', { 'a-new-marker-votes-at-once': "this.follow('wait ended');" }],
  [
    'no veto',
    {
      'no-veto-1':
        'const owesVeto = group.quorum < 0 && !marker.isVetoed && (isYoung || record.markerChangedWhileHolding);',
      'no-veto-2': 'const vetoed = this.group.quorum < 0 ? 1 : 0;',
    },
  ],
  ['early vote too early', { 'early-vote-too-early': 'export const EARLY_AFTER = 1;' }],
  ['nothing released', { 'nothing-released': 'return Promise.resolve();' }],
  ['sent again after its release', { 'sent-again-after-its-release': '' }],
  ['an extension does not withdraw the acquisition', { 'an-extension-does-not-withdraw-the-acquisition': '' }],
  [
    'last come, first served',
    {
      'last-come-first-served': 'let next = this.last;',
    },
  ],
  ['a nested call waits for its own chain', { 'nested-call-waits-for-its-own-chain': '' }],
  ['parts kept from a nested call', { 'parts-kept-from-a-nested-call': '' }],
  ['nested calls are judged once', { 'nested-calls-judged-once': 'const isWanted = false;' }],
  [
    'ended wait not blamed',
    {
      'ended-wait-not-blamed':
        'if (this.stopped) this.paused += this.waited - began; ' +
        'else this.blame(blamed?.() ?? new Map([[undefined, this.waited - began]]));',
    },
  ],
  ['a first attempt counts as holding', { 'a-first-attempt-counts-as-holding': 'return this.settings.instance;' }],
  ['timer of a lock kept', { 'timer-of-a-lock-kept': '' }],
  ['listener of a caller kept', { 'listener-of-a-caller-kept': '' }],
  [
    'budget counted from each attempt',
    { 'budget-counted-from-each-attempt': 'return Math.max(0, this.call.wait * 1.1 - waited);' },
  ],
  ['state of lost data counted', { 'stale-state-counted': 'return stored !== undefined || isFirst;' }],
  ['masters that lost the state counted', { 'masters-that-lost-the-state-counted': 'const counted = reports.length;' }],
  ['generation of a state not compared', { 'generation-not-compared': 'or true' }, 'model'],
  [
    'quarantined masters open the state',
    {
      'quarantined-masters-open-the-state': "masters.map((master) => [master, master.identity().generation ?? '']),",
    },
  ],
  ['ballots compared by id', { 'ballots-compared-by-id': '' }],
  [
    'smaller ballots open the state',
    { 'smaller-ballots-open-the-state': '', 'smaller-ballots-open-the-state-in-memory': '' },
  ],
  ['work begins without a look at the lock', { 'work-begun-without-a-look-at-the-clock': '' }],
  [
    'work begins unless a loss was reported',
    { 'work-begun-without-a-look-at-the-clock': 'if (this.isOver) return false;' },
  ],
  ['work begins among other reactions', { 'work-begun-among-other-reactions': '' }],
  [
    'a step that too few masters can judge is forgotten',
    { 'undecided-step-forgotten': "if (judgement?.culprit === 'either' && !mayGrant) return record.clock.forget();" },
  ],
  ['a second address of a master judges its clock', { 'twin-judges': 'const distinct = answering;' }],
  ['a standstill is not subtracted', { 'standstill-not-subtracted': 'const missed = 0;' }],
  ['lock passed on with its token', { 'lock-passed-on-with-its-token': '' }],
  [
    'shared beside an exclusive holder',
    {
      'shared-beside-an-exclusive-holder': 'if true then return nil end',
      'shared-beside-an-exclusive-holder-in-memory': 'const isOurs = true;',
    },
  ],
  [
    'exclusive beside shared holders',
    {
      'exclusive-beside-shared-holders': 'local longest, held, owner = ${FREE}, {}, nil',
      'exclusive-beside-shared-holders-in-memory':
        'const isHeld = keys.map((key) => ![undefined, token, reserved].includes(server.data.get(key)));',
    },
  ],
  [
    'exclusive extension over shared holders',
    {
      'extension-over-shared-holders': 'local longest, owner = ${FREE}, nil',
      'extension-over-shared-holders-in-memory':
        'const isHeld = keys.map((key) => ![undefined, token].includes(server.data.get(key)));',
    },
  ],
  [
    'shared extension over an exclusive holder',
    {
      'shared-extension-over-a-string': "for _, key in ipairs(keys) do call('DEL', key) end",
      'shared-extension-over-a-string-in-memory':
        'const isHeld = contents.map(({ owner }, index) => owner !== undefined && data.del(keys[index]));',
    },
  ],
  [
    'shared key deleted',
    {
      'shared-key-deleted': "call('DEL', key)",
      'shared-key-deleted-in-memory': 'server.data.del(key);',
    },
  ],
  [
    'expiry of a shared key only grows',
    {
      'shared-key-expiry-only-grows':
        "local moved = last[2] and last[2] - milliseconds() > call('PTTL', key) and pcall_redis('PEXPIREAT', key, last[2])",
      'shared-key-expiry-only-grows-in-memory': 'const left = last && Math.max(last[1] - now, data.pttl(key));',
    },
  ],
  [
    'wake chain stops after one',
    {
      'wake-chain-broken-1': '',
      'wake-chain-broken-1-in-memory': '',
      'wake-chain-broken-2': 'if true then return true end',
      'wake-chain-broken-2-in-memory': 'return true;',
    },
  ],
  [
    'barriers not looked at',
    { 'barriers-not-looked-at': 'local precedes = false', 'barriers-not-looked-at-in-memory': 'return false;' },
  ],
  ['barrier on one master', { 'barrier-on-one-master': 'masters[0]?.ask(request, () => undefined);' }],
].map(([name, lines, model]) => ({ name, lines, isInModel: model !== undefined, firstSeed: FIRST_SEEDS[name] ?? 1 }));

const ANCHORED = /^( *).* (?:\/\/|--) @mutant (.+)$/gm;

/** Gives the files of the library the fault. `check` throws unless each of its lines was found once. */
export function changeOf({ name, lines }) {
  const found = Object.fromEntries(Object.keys(lines).map((anchor) => [anchor, 0]));
  const change = (_file, text) =>
    text.replace(ANCHORED, (line, indentation, anchors) => {
      const anchor = anchors.split(', ').find((one) => one in lines);
      if (anchor === undefined) return line;
      found[anchor]++;
      return indentation + lines[anchor];
    });
  const check = () => {
    const odd = Object.entries(found).filter(([, times]) => times !== 1);
    const words = odd.map(([anchor, times]) => `@mutant ${anchor} is ${times} times in the library`);
    if (odd.length > 0) throw new Error(`mutant "${name}": ${words.join(', ')}`);
  };
  return { change, check };
}
