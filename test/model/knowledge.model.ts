import { type Emit } from './checker.js';
import { layoutOf, sortRecords, StateModel, stepsOf } from './states.js';

export interface KnowledgeOptions {
  readonly masters: 3 | 4 | 5;
  readonly sorted?: boolean;
  readonly without?: readonly string[];
}

const [FREE, OURS, OTHERS] = [0, 1, 2];

const [SILENT, HAD, GONE, HELD] = [0, 1, 2, 3];

const [HOLDING, EXTENDING, RELEASING, OVER] = [0, 1, 2, 3];

const [UNTOLD, UNTOLD_AT_RELEASE, FALSE_LOSS] = [1, 2, 3];
const PROPERTIES = [
  undefined,
  'another client has held the lock, and an extension that was sent later is granted',
  'another client has held the lock, and the release does not tell',
  'a loss is told, although a quorum has had the key ever since',
];

const MASTER = ['owner', 'unsure', 'pending', 'reply', 'settled', 'kept'] as const;

const steps = stepsOf({
  vanish: (_, master) => `the key vanishes from ${master}`,
  take: (_, master) => `${master} grants another client`,
  late: (_, master) => `a request that was under way sets our key on ${master}`,
  answered: (_, master) => `${master} has answered all requests that set our key`,
  heal: (_, master) => `a heal is sent to ${master}`,
  extend: () => 'an extension is sent',
  release: () => 'a release is sent',
  reply: (_, master) => `${master} replies`,
  end: () => 'the round ends undecided',
});

/**
 * Protocol 6.2, 6.3, 6.4, 7.1 and 7.6: what a holder learns. The key vanishes from masters at any time, and others take it and let it
 * go, as if no lease held. There is no time. A request that sets our key and has not been answered may be executed at any time.
 */
export class KnowledgeModel extends StateModel<KnowledgeOptions> {
  private readonly at: ReturnType<typeof KnowledgeModel.layout>;
  private readonly quorum: number;

  constructor(options: KnowledgeOptions) {
    const at = KnowledgeModel.layout(options.masters);
    super(options, at.width);
    this.at = at;
    this.quorum = Math.floor(options.masters / 2) + 1;
  }

  private static layout(masters: number) {
    // Another client has held the lock: since a round that counted was sent, and before this round was sent.
    return layoutOf([[masters, MASTER]], ['phase', 'otherHeld', 'heldBefore', 'broken'] as const);
  }

  /** A quorum has granted within `masterTimeout`. The others have granted, too, or refused, or not answered. */
  initial(): Uint8Array[] {
    const { at } = this;
    const { masters } = this.options;
    const states: Uint8Array[] = [];
    for (let answers = 0; answers < 3 ** masters; answers += 1) {
      const state = new Uint8Array(this.width);
      let granted = 0;
      for (let m = 0; m < masters; m += 1) {
        const answer = Math.floor(answers / 3 ** m) % 3;
        if (answer === 0) {
          granted += 1;
          state[at.owner(m)] = OURS;
          state[at.kept(m)] = 1;
        }
        if (answer === 1) this.send(state, m, 'a request that was not answered in time counts');
      }
      if (granted >= this.quorum) states.push(state);
    }
    return states;
  }

  violation(state: Uint8Array): string | undefined {
    return PROPERTIES[state[this.at.broken]!];
  }

  successors(state: Uint8Array, emit: Emit): void {
    const { at } = this;
    const phase = state[at.phase]!;
    if (phase === OVER) return;
    for (let m = 0; m < this.options.masters; m += 1) {
      this.disturb(state, m, emit);
      if (phase === EXTENDING || phase === RELEASING) this.reply(state, m, emit);
      if (phase === HOLDING) this.heal(state, m, emit);
    }
    if (phase !== HOLDING) {
      if (phase === EXTENDING) this.step(state, 'end', 0, emit, (next) => (next[at.phase] = HOLDING));
      return;
    }
    this.begin(state, EXTENDING, emit);
    this.begin(state, RELEASING, emit);
  }

  private step(
    state: Uint8Array,
    step: Parameters<typeof steps.action>[0],
    m: number,
    emit: Emit,
    change: (next: Uint8Array) => unknown,
  ) {
    const next = this.copy(state);
    change(next);
    this.watch(next);
    if (this.options.sorted) sortRecords(next, { width: MASTER.length, count: this.options.masters });
    emit(next, steps.action(step, 0, m));
  }

  private watch(next: Uint8Array): void {
    let others = 0;
    for (let m = 0; m < this.options.masters; m += 1) if (next[this.at.owner(m)] === OTHERS) others += 1;
    if (others >= this.quorum) next[this.at.otherHeld] = 1;
  }

  private disturb(state: Uint8Array, m: number, emit: Emit): void {
    const { at } = this;
    const owner = state[at.owner(m)]!;
    if (owner !== FREE) {
      this.step(state, 'vanish', m, emit, (next) => (next[at.owner(m)] = next[at.kept(m)] = 0));
    } else {
      this.step(state, 'take', m, emit, (next) => (next[at.owner(m)] = OTHERS));
      if (state[at.pending(m)] === 1) this.step(state, 'late', m, emit, (next) => (next[at.owner(m)] = OURS));
    }
    if (state[at.pending(m)] === 1) this.step(state, 'answered', m, emit, (next) => (next[at.pending(m)] = 0));
  }

  /** To a master that replied that the key is gone, after the round: Protocol 6.2. */
  private heal(state: Uint8Array, m: number, emit: Emit): void {
    if (state[this.at.reply(m)] !== GONE) return;
    this.step(state, 'heal', m, emit, (next) => {
      next[this.at.reply(m)] = SILENT;
      this.send(next, m, 'a heal counts');
    });
  }

  private send(next: Uint8Array, m: number, weakening: string): void {
    next[this.at.pending(m)] = 1;
    next[this.at.unsure(m)] = this.weak.has(weakening) ? 0 : 1;
  }

  private begin(state: Uint8Array, phase: number, emit: Emit): void {
    const { at } = this;
    this.step(state, phase === EXTENDING ? 'extend' : 'release', 0, emit, (next) => {
      next[at.phase] = phase;
      next[at.heldBefore] = next[at.otherHeld]!;
      for (let m = 0; m < this.options.masters; m += 1) {
        next[at.reply(m)] = SILENT;
        next[at.settled(m)] = next[at.pending(m)] === 0 ? 1 : 0;
      }
    });
  }

  private reply(state: Uint8Array, m: number, emit: Emit): void {
    const { at } = this;
    if (state[at.reply(m)] !== SILENT) return;
    this.step(state, 'reply', m, emit, (next) => {
      const owner = next[at.owner(m)]!;
      const sets = owner === FREE && next[at.phase] === EXTENDING && this.weak.has('an extension sets absent keys');
      if (sets) next[at.owner(m)] = OURS;
      next[at.reply(m)] = sets || owner === OURS ? HAD : owner === OTHERS ? HELD : GONE;
      const releases = next[at.phase] === RELEASING;
      this.decide(next);
      if (releases && owner === OURS) next[at.owner(m)] = FREE;
    });
  }

  private decide(next: Uint8Array): void {
    const { at } = this;
    const { masters } = this.options;
    const releases = next[at.phase] === RELEASING;
    let [had, lasting, lacking, silent, kept] = [0, 0, 0, 0, 0];
    for (let m = 0; m < masters; m += 1) {
      const reply = next[at.reply(m)]!;
      const unsure = next[at.unsure(m)] === 1;
      if (reply === HAD) had += 1;
      if (reply === HAD && !unsure) lasting += 1;
      if (this.lacks(reply, unsure)) lacking += 1;
      if (reply === SILENT) silent += 1;
      if (next[at.kept(m)] === 1 && !unsure) kept += 1;
    }
    const most = this.weak.has('one master that lacks the keys is a loss') ? 1 : this.quorum;
    const told = lacking >= most && !(releases && this.weak.has('a release tells nothing'));
    const granted = had >= this.quorum && lasting > masters - this.quorum;
    const enough = this.weak.has('a release ends when a quorum had the keys, unsure masters included')
      ? had >= this.quorum
      : granted;
    if (told) {
      if (kept >= this.quorum) next[at.broken] ||= FALSE_LOSS;
      next[at.phase] = OVER;
    } else if (releases) {
      if (!enough && silent > 0) return;
      if (next[at.heldBefore] === 1) next[at.broken] ||= UNTOLD_AT_RELEASE;
      next[at.phase] = OVER;
    } else if (granted) this.grant(next);
  }

  private lacks(reply: number, unsure: boolean): boolean {
    if (reply === SILENT) return this.weak.has('a silent master lacks the keys');
    if (this.weak.has('only another holder is a loss')) return reply === HELD;
    if (reply !== HAD) return true;
    return unsure && !this.weak.has('an unsure master that had the keys does not lack them');
  }

  /** Protocol 6.3. */
  private grant(next: Uint8Array): void {
    const { at } = this;
    if (next[at.heldBefore] === 1) next[at.broken] ||= UNTOLD;
    next[at.phase] = HOLDING;
    next[at.heldBefore] = 0;
    const anyRound = this.weak.has('a granted round counts for a master, although a heal was under way');
    for (let m = 0; m < this.options.masters; m += 1) {
      if (next[at.settled(m)] === 1 || anyRound) next[at.unsure(m)] = 0;
      next[at.kept(m)] = next[at.owner(m)] === OURS && next[at.unsure(m)] === 0 ? 1 : 0;
    }
  }

  readonly describe = (code: number): string => steps.describe(code, []);

  show(state: Uint8Array): string {
    const { at } = this;
    const masters = Array.from({ length: this.options.masters }, (_, m) => {
      const words = [['-', 'ours', 'others'][state[at.owner(m)]!]!, ['', 'had', 'gone', 'held'][state[at.reply(m)]!]!];
      if (state[at.unsure(m)] === 1) words.push('unsure');
      if (state[at.pending(m)] === 1) words.push('under way');
      return `m${m + 1} ${words.filter((word) => word !== '').join(' ')}`;
    });
    const phase = ['holds', 'extends', 'releases', 'over'][state[at.phase]!]!;
    return [...masters, `${phase}${state[at.otherHeld] === 1 ? ', another has held' : ''}`].join(' | ');
  }
}
