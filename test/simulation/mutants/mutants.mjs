// Faults in the algorithm that the properties must notice. Each replaces whole lines of the library: those that end in an
// anchor, `// @mutant <name>` or `-- @mutant <name>` in a script. An anchor that is not in the library exactly once is an
// error, and code may be renamed and moved together with its anchors.
//
// Random schedules rarely notice the other anchors in the code of states. These specs do:
// - state-written-to-one-master, late-openings-counted, state-not-written-back: test/unit/fencing/lock-state.spec.ts;
// - state-not-claimed, smaller-claims-write-the-state, earlier-writes-replace-the-state, any-holder-opens-the-state:
//   test/contract/state.contract.ts.
// What is known of lost keys is noticed by test/unit/redlock/told-losses.spec.ts (healed-masters-sure-at-once), and by
// test/contract/master.contract.ts (extension-shortens).
//
// No schedule needs any-connection-in-a-round: test/unit/redis/first-call.spec.ts.
//
// The simulated servers do not run Lua. A fault in a script is therefore in its model, too: in lib/memory/operations.ts or,
// where `model` says so, in the simulation (`modelFaults` in profiles.ts).

/** Where the search begins for mutants that few schedules notice. It goes on from there, however far it has to. */
const FIRST_SEEDS = {
  'extension without owner check': 330,
  'heal after the deadline': 630,
  'wall clock only': 350,
  'draw for any holder': 955,
  'exclusive extension over shared holders': 410,
  'shared extension over an exclusive holder': 2_005,
  'wake chain stops after one': 5_125,
  'writer key not looked at': 885,
  'writer key on one master': 1_690,
};

/** Faults in a script whose model is in the simulation. */
const IN_MODEL = [
  'floor ignored',
  'run not compared',
  'missing marker taken for one',
  'marker not written',
  'marker written again',
  'wait too short',
  'quarantine not kept',
  'gate open',
];

/**
 * By name, the line that replaces that with the anchor of the same name; of a script, this line and that in memory; or several
 * anchors with their lines.
 */
const LINES = {
  'start time taken after replies': 'this.since = this.rules.clock.read();',
  'elapsed ignored': "return this.phase === 'released' ? 0 : this.validity - 0 * elapsedBetween(this.since, now);",
  'drift ignored': 'return ttl + 0 * driftOf(this.rules.timing, ttl);',
  'quorum minus one': 'return Math.max(1, Math.floor(masters / 2));',
  'unconditional delete': ['local is_ours = owner and true', 'const isOurs = owner !== undefined;'],
  'release only to granters': {
    'release-only-to-granters-1': "return this.masters.filter((_, index) => this.answers[index]?.kind === 'granted');",
    'release-only-to-granters-2': 'if (this.answers.every(() => false)) return this.masters;',
  },
  'extension without owner check': ['local longest, owner = nil, nil', 'const isHeld = [false];'],
  'healed masters counted': 'return grants + more >= quorum;',
  'each extension heals': ['if false then', 'const isSetAgain = true;'],
  'heal after the deadline': 'if (this.isOver) return;',
  'quarantined votes counted': 'return GRANTED;',
  'wall clock only': 'return Math.max(to.wall - from.wall, 0);',
  'monotonic only across a suspend': 'return Math.max(to.monotonic - from.monotonic, 0);',
  'draw for any holder': ['', 'const isOurs = keys.length > 0;'],
  'larger draws not adopted': {
    'larger-draws-not-adopted': 'this.largest ||= Math.max(0, ...answers);',
    'larger-draws-not-adopted-2': 'const repeated = answers.filter((answer) => answer >= this.largest).length;',
  },
  'token of one master': 'if (repeated > 0) this.token = this.largest;',
  'floor ignored': 'drawn = at_least',
  'nothing drawn': 'const isFirst = false;',
  'notification trusted without the timer': 'const cause = await this.rest();',
  'token reused across attempts':
    'const token = ((call as { reused?: string }).reused ??= this.options.random.token());',
  'run not compared': 'if not tonumber(from) then',
  'missing marker taken for one': 'if is_first and tonumber(from) then',
  'marker not written': '',
  'marker written again': 'if true then',
  'wait too short': "from = string.format('%.0f', now + 0.1 * max_ttl)",
  'quarantine not kept': 'wait = 0',
  'gate open': 'wait = wait or 0',
  'other calls before the first': {
    'calls-before-the-first':
      'this.serve(true); return void this.clock.schedule(20, () => void this.user.greet().then((is) => this.serve(is), () => undefined));',
  },
  'error taken for the answer of the first call': {
    'error-taken-for-an-answer': 'if (isReply(error)) return this.serve(true); this.fail(error);',
  },
  'later twin not excluded': 'master.exclude(twin && undefined);',
  'nothing released': 'return Promise.resolve();',
  'sent again after its release': '',
  'last come, first served': 'let next = this.last;',
  'a nested call joins the queue': {
    'nested-call-joins-the-queue': 'const mayJoin = wait > 0 || this.queue.isEmpty(queues);',
  },
  'timer of a lock kept': '',
  'listener of a caller kept': '',
  'budget counted from each attempt': 'return Math.max(0, this.call.wait * 1.1 - waited);',
  'state of lost data counted': { 'stale-state-counted': "return marker === '' || entry?.stored !== undefined;" },
  'lost state read from a quorum': 'const isEnough = reports.length >= quorum;',
  'oldest state read': '(oldest, value) => oldest ?? value,',
  'smaller claims open the state': ['', ''],
  'work begins among other reactions': { 'work-begun-among-other-reactions': '' },
  'shared beside an exclusive holder': ['if true then return nil end', 'const isOurs = true;'],
  'exclusive beside shared holders': [
    'if not request.is_shared then return nil end',
    'const isHeld = keys.map((key) => ![undefined, token, reserved].includes(server.data.get(key)));',
  ],
  'exclusive extension over shared holders': {
    'extension-over-shared-holders': 'if not request.is_shared then return nil end',
    'extension-over-shared-holders-in-memory':
      'const isHeld = keys.map((key) => ![undefined, token].includes(server.data.get(key)));',
  },
  'shared extension over an exclusive holder': {
    'shared-extension-over-a-string': "if value then return request.since and call('PTTL', key), value end",
    'shared-extension-over-a-string-in-memory':
      'const isHeld = contents.map(({ owner }, index) => owner !== undefined && data.del(keys[index]));',
  },
  'shared key deleted': ["call('DEL', key)", 'server.data.del(key);'],
  'expiry of a shared key only grows': {
    'shared-key-expiry-only-grows':
      "local moved = last[2] and last[2] - milliseconds() > call('PTTL', key) and pcall_redis('PEXPIREAT', key, last[2])",
    'shared-key-expiry-only-grows-in-memory': 'const left = last && Math.max(last[1] - now, data.pttl(key));',
  },
  'wake chain stops after one': {
    'wake-chain-broken-1': '',
    'wake-chain-broken-1-in-memory': '',
    'wake-chain-broken-2': 'if true then return true end',
    'wake-chain-broken-2-in-memory': 'return true;',
  },
  'writer key not looked at': ['local is_later = false', 'if (data) return undefined;'],
  'reservation ignores distance': 'return SHORTEST_RESERVATION;',
  'writer key left behind': 'const asked = this.queuedAt.size > 0 ? this.queuedAt : masters;',
  'writer key on one master': 'masters[0]?.ask(request, () => undefined);',
};

export const MUTANTS = mutantsOf(LINES, FIRST_SEEDS);

/** Mutants in the form in which they are run. */
export function mutantsOf(all, firstSeeds) {
  return Object.entries(all).map(([name, given]) => {
    const anchor = name.replace(/,? /g, '-');
    const [line, inMemory] = [given].flat();
    const lines =
      typeof line === 'object'
        ? line
        : { [anchor]: line, ...(inMemory !== undefined && { [`${anchor}-in-memory`]: inMemory }) };
    return { name, lines, isInModel: IN_MODEL.includes(name), firstSeed: firstSeeds[name] ?? 1 };
  });
}

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
