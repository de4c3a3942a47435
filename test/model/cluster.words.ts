import { at, FOREIGN, SERVERS } from './cluster.layout.js';
import { type ClusterOptions } from './cluster.options.js';
import { stepsOf } from './states.js';

/** The processes, and after them the clients. */
const NAMES = 'ABCDEFLX';
export const CLIENT = 6;
const CLIENTS = ['L', 'X'];

const steps = stepsOf({
  tick: () => 'a tick passes',

  begin: (client) => `${client} sends an attempt`,
  'begin to extend': (client) => `${client} sends an extension`,
  grant: (client, node) => `${node} grants ${client}`,
  extend: (client, node) => `${node} extends the lock of ${client}`,
  view: (client) => `${client} sends a view that a majority will confirm`,
  map: (client, _, claim) => `${client} reads the map with claim ${claim}`,
  seal: (client, node) => `${client} seals the unknown data of ${node}`,
  read: (client, node) => `${client} reads the unknown data of ${node}`,
  write: (client, node) => `the seal that ${client} has sent reaches ${node}`,

  'empty restart': (node) => `${node}: empty restart`,
  'stale restart': (node) => `${node}: stale restart`,
  'stale key': (node) => `${node}: stale restart with an old copy of the key`,
  flush: (node) => `${node}: flush`,

  election: (node) => `${node} asks for votes`,
  vote: (node, candidate) => `${node} votes for ${candidate}`,
  win: (node) => `${node} is elected, without the key`,
  'win with the key': (node) => `${node} is elected`,
  'give up': (node) => `the election of ${node} fails`,
  takeover: (node) => `${node} takes over, without the key`,
  'takeover with the key': (node) => `${node} takes over`,
  move: (node, target) => `the partition begins to move from ${node} to ${target}`,
  'atomic move': (node, target) => `the partition moves from ${node} to ${target} at once`,
  'migrate key': (node, target) => `the key migrates from ${node} to ${target}`,
  'migrate seal': (node, target) => `the seal migrates from ${node} to ${target}`,
  claim: (node) => `${node} claims the slots`,
  abort: (node) => `the move away from ${node} is given up`,
  reclaim: (node) => `${node} claims the slots again, with the data of before`,
  'move of other slots': (node) => `${node} takes other slots under a new epoch`,

  hear: (node, from) => `${node} hears from ${from}`,
  assign: (node, owner) => `${node} names ${owner} under the epoch that it knows`,
  cut: (node) => `${node} is cut off from the other primaries`,
  pause: (node) => `${node} stands still`,
  connect: (node) => `${node} goes on`,
});

export type ClusterStep = Parameters<typeof steps.action>[0];

export const actionOf = (step: ClusterStep, who = 0, other = 0): number => steps.action(step, who, other, other);
export const describe = (code: number): string => steps.describe(code, NAMES, NAMES);

/** The states of the model of a cluster in words. */
export class ClusterWords {
  constructor(private readonly options: ClusterOptions) {}

  show(state: Uint8Array): string {
    const nodes = Array.from({ length: this.options.primaries + 1 }, (_, node) => this.showNode(state, node));
    return [...nodes, ...CLIENTS.map((_, c) => this.showClient(state, c))].join(' | ');
  }

  private showNode(state: Uint8Array, node: number): string {
    const claim = state[at.claim(node)]!;
    const epoch = state[at.epoch(node)]! > 0 ? ` e${state[at.epoch(node)]!}` : '';
    const owner = NAMES[state[at.claimant(claim)]!]!;
    const knows = `${NAMES[node]!} ${claim}:${owner}${epoch}`;
    if (!SERVERS.includes(node)) return knows;
    const key =
      state[at.owner(node)]! > 0 ? ` ${CLIENTS[state[at.owner(node)]! - 1]!}/${state[at.expiry(node)]!}` : ' -';
    return `${knows}${key}${this.showSeal(state, node)}`;
  }

  private showSeal(state: Uint8Array, server: number): string {
    const named = state[at.seal(server)]!;
    if (named === 0) return '';
    const claim = this.options.sealHasClaim ? `.${state[at.sealClaim(server)]!}` : '';
    const from = state[at.from(server)]! > 0 ? ` from +${state[at.from(server)]!}` : '';
    return ` seal ${named === FOREIGN ? '?' : NAMES[named - 1]!}${claim}${from}`;
  }

  private showClient(state: Uint8Array, c: number): string {
    const name = CLIENTS[c]!;
    const epoch = state[at.mapEpoch(c)]! > 0 ? ` e${state[at.mapEpoch(c)]!}` : '';
    const view = state[at.view(c)]! > 0 ? ` view ${state[at.view(c)]! - 1} old` : '';
    const map = ` map ${state[at.map(c)]!}${epoch}${view}`;
    const round = state[at.round(c)]! > 0 ? ` asks ${NAMES[state[at.sent(c)]! - 1]!}/${state[at.round(c)]!}` : '';
    return `${name}${this.believes(state, c) ? ` believes for ${state[at.belief(c)]!}` : ''}${round}${map}`;
  }

  private believes(state: Uint8Array, c: number): boolean {
    return state[at.belief(c)]! > 0;
  }
}
