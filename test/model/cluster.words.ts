import { type ClusterLayout, FOREIGN, SERVERS } from './cluster.layout.js';
import { type ClusterOptions } from './cluster.options.js';
import { type ModelStep } from './cluster.steps.js';

const NODES = ['A', 'B', 'C', 'D', 'E', 'F'];
const CLIENTS = ['L', 'X'];

interface Step {
  readonly step: ModelStep;
  readonly first: number;
  readonly second: number;
}

/** The steps and states of the model of a cluster in words. */
export class ClusterWords {
  constructor(
    private readonly options: ClusterOptions,
    private readonly at: ClusterLayout,
  ) {}

  describe({ step, first, second }: Step, before: Uint8Array): string {
    const node = NODES[first]!;
    const client = CLIENTS[first] ?? '';
    const other = NODES[second]!;
    switch (step) {
      case 'tick':
        return 'a tick passes';
      case 'begin':
        return `${client} sends ${this.believes(before, first) ? 'an extension' : 'an attempt'}`;
      case 'ask':
        return `${other} ${this.believes(before, first) ? 'extends the lock of' : 'grants'} ${client}`;
      case 'view':
        return `${client} sends a view that a majority will confirm`;
      case 'map':
        return `${client} reads the map with claim ${second}`;
      case 'seal':
        return `${client} seals the unknown data of ${other}`;
      case 'read':
        return `${client} reads the unknown data of ${other}`;
      case 'write':
        return `the seal that ${client} has sent reaches ${other}`;
      case 'empty restart':
      case 'stale restart':
      case 'flush':
        return `${node}: ${step}`;
      case 'stale key':
        return `${node}: stale restart with an old copy of the key`;
      case 'election':
        return `${node} asks for votes`;
      case 'vote':
        return `${node} votes for ${other}`;
      case 'win':
        return `${node} is elected, without the key`;
      case 'win with the key':
        return `${node} is elected`;
      case 'give up':
        return `the election of ${node} fails`;
      case 'takeover':
        return `${node} takes over, without the key`;
      case 'takeover with the key':
        return `${node} takes over`;
      case 'move':
      case 'forced move':
      case 'aborted move':
        return `the partition begins to move from ${node} to ${other}`;
      case 'atomic move':
        return `the partition moves from ${node} to ${other} at once`;
      case 'migrate key':
        return `the key migrates from ${node} to ${other}`;
      case 'migrate seal':
        return `the seal migrates from ${node} to ${other}`;
      case 'claim':
        return `${node} claims the slots`;
      case 'abort':
        return `the move away from ${node} is given up`;
      case 'reclaim':
        return `${node} claims the slots again, with the data of before`;
      case 'move of other slots':
        return `${node} takes other slots under a new epoch`;
      case 'hear':
        return `${node} hears from ${other}`;
      case 'assign':
        return `${node} names ${other} under the epoch that it knows`;
      case 'cut':
        return `${node} is cut off from the other primaries`;
      case 'pause':
        return `${node} stands still`;
      case 'connect':
        return `${node} goes on`;
    }
  }

  show(state: Uint8Array): string {
    const nodes = Array.from({ length: this.at.nodes }, (_, node) => this.showNode(state, node));
    return [...nodes, ...CLIENTS.map((_, c) => this.showClient(state, c))].join(' | ');
  }

  private showNode(state: Uint8Array, node: number): string {
    const { at } = this;
    const claim = state[at.claim(node)]!;
    const epoch = state[at.epoch(node)]! > 0 ? ` e${state[at.epoch(node)]!}` : '';
    const owner = NODES[state[at.claimant(claim)]!]!;
    const knows = `${NODES[node]!} ${claim}:${owner}${epoch}`;
    if (!SERVERS.includes(node)) return knows;
    const key =
      state[at.owner(node)]! > 0 ? ` ${CLIENTS[state[at.owner(node)]! - 1]!}/${state[at.expiry(node)]!}` : ' -';
    return `${knows}${key}${this.showSeal(state, node)}`;
  }

  private showSeal(state: Uint8Array, server: number): string {
    const { at } = this;
    const named = state[at.seal(server)]!;
    if (named === 0) return '';
    const claim = this.options.sealHasClaim ? `.${state[at.sealClaim(server)]!}` : '';
    const from = state[at.from(server)]! > 0 ? ` from +${state[at.from(server)]!}` : '';
    return ` seal ${named === FOREIGN ? '?' : NODES[named - 1]!}${claim}${from}`;
  }

  private showClient(state: Uint8Array, c: number): string {
    const { at } = this;
    const name = CLIENTS[c]!;
    const epoch = state[at.mapEpoch(c)]! > 0 ? ` e${state[at.mapEpoch(c)]!}` : '';
    const view = state[at.view(c)]! > 0 ? ` view ${state[at.view(c)]! - 1} old` : '';
    const map = ` map ${state[at.map(c)]!}${epoch}${view}`;
    const round = state[at.round(c)]! > 0 ? ` asks ${NODES[state[at.sent(c)]! - 1]!}/${state[at.round(c)]!}` : '';
    return `${name}${this.believes(state, c) ? ` believes for ${state[at.belief(c)]!}` : ''}${round}${map}`;
  }

  private believes(state: Uint8Array, c: number): boolean {
    return state[this.at.belief(c)]! > 0;
  }
}
