import { A, at, B, C, copyKey, copySeal, endElection, MAX_CLAIMS } from './cluster.layout.js';
import { ClusterPart, type EmitStep } from './cluster.ownership.js';

/** The replica of A takes over, and later perhaps A as the replica of B: after an election, or without one. */
export class Failover extends ClusterPart {
  steps(state: Uint8Array, emit: EmitStep): void {
    const { events, nodeTimeout } = this.options;
    if (state[at.candidate] !== 0) {
      this.election(state, emit);
      return;
    }
    const replica = this.replica(state);
    if (replica < 0 || state[at.events] === 0) return;
    if (events.includes('election')) this.ask(state, replica, emit);
    const isMissed = !nodeTimeout || state[at.missed]! >= nodeTimeout.ticks;
    if (!events.includes('takeover') || !isMissed) return;
    this.promote(state, replica, state[at.epoch(replica)]! + 1, (next, hasKey) => {
      this.ownership.happen(next);
      emit(next, hasKey ? 'takeover with the key' : 'takeover', replica);
    });
  }

  /** The replica of the owner, if it knows that it is one; -1 if there is none. */
  private replica(state: Uint8Array): number {
    const last = state[at.last]!;
    const owner = this.ownership.owner(state);
    if (owner === C || last === MAX_CLAIMS) return -1;
    const replica = owner === A ? B : A;
    return this.ownership.claim(state, replica) === last ? replica : -1;
  }

  private ask(state: Uint8Array, replica: number, emit: EmitStep): void {
    const next = this.copy(state);
    this.ownership.happen(next);
    next[at.candidate] = replica + 1;
    next[at.epoch(replica)]! += 1;
    next[at.candidateEpoch] = next[at.epoch(replica)]!;
    emit(next, 'election', replica);
  }

  /** A voter raises its epoch before it votes. */
  private election(state: Uint8Array, emit: EmitStep): void {
    const candidate = state[at.candidate]! - 1;
    const epoch = state[at.candidateEpoch]!;
    const voters = this.ownership.electorate(state, state[at.last]!);
    for (const [bit, voter] of voters.entries()) {
      if ((state[at.voted]! & (1 << bit)) !== 0 || state[at.epoch(voter)]! > epoch) continue;
      const next = this.copy(state);
      next[at.voted]! |= 1 << bit;
      next[at.epoch(voter)] = epoch;
      emit(next, 'vote', voter, candidate);
    }
    const votes = voters.filter((_, bit) => (state[at.voted]! & (1 << bit)) !== 0).length;
    if (votes * 2 > voters.length && this.replica(state) === candidate) {
      this.promote(state, candidate, epoch, (next, hasKey) => {
        emit(next, hasKey ? 'win with the key' : 'win', candidate);
      });
    }
    const next = this.copy(state);
    endElection(next);
    emit(next, 'give up', candidate);
  }

  /** A replica takes the slots with a copy of the data, in which the lock may be missing. */
  private promote(
    state: Uint8Array,
    replica: number,
    epoch: number,
    emit: (next: Uint8Array, hasKey: boolean) => void,
  ): void {
    const owner = this.ownership.owner(state);
    for (const hasKey of state[at.owner(owner)] === 0 ? [false] : [false, true]) {
      const next = this.copy(state);
      this.ownership.changeReplid(next, replica);
      copySeal(next, owner, replica);
      if (hasKey) copyKey(next, owner, replica);
      this.ownership.addClaim(next, replica, epoch);
      emit(next, hasKey);
    }
  }
}
