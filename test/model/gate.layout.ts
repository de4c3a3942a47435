// Where the model of the restart gate keeps what.
import { bitCount, layoutOf } from './states.js';

/** What a master serves: the key, and the marker. A run is numbered by its age, from one, the run of the process; 0 is none. */
const DATA = ['owner', 'expiry', 'run', 'from'] as const;

/** The offsets of the fields of a state. `conn`: the server that a client is connected to, plus one. */
export function gateLayout(masters: number, servers: number) {
  const at = layoutOf(
    [
      // `runs`: bits of the runs in which a marker was written. `held`: L has had the key here. `hit`: something was lost here.
      [
        servers,
        [...DATA, 'runs', 'held', 'hit', 'asideOwner', 'asideExpiry', 'asideRun', 'asideFrom', 'aside'] as const,
      ],
      [2, ['belief', 'round', 'counted'] as const],
      [2 * masters, ['connOf', 'joinedOf'] as const],
      [masters, ['address'] as const],
    ],
    ['faults', 'since'] as const,
  );
  return {
    ...at,
    conn: (c: number, m: number): number => at.connOf(c * masters + m),
    /** Whether a connection stood when the round began. */
    joined: (c: number, m: number): number => at.joinedOf(c * masters + m),
  };
}

export type GateLayout = ReturnType<typeof gateLayout>;

/** Moves the data of a server, which its process takes along. */
export function setAside(next: Uint8Array, at: GateLayout, v: number): void {
  next.copyWithin(at.asideOwner(v), at.owner(v), at.owner(v) + DATA.length);
  next[at.aside(v)] = 1;
}

export function putBack(next: Uint8Array, at: GateLayout, v: number): void {
  next.copyWithin(at.owner(v), at.asideOwner(v), at.asideOwner(v) + DATA.length);
  next.fill(0, at.asideOwner(v), at.aside(v) + 1);
}

export function isQuorum(counted: number, masters: number): boolean {
  return bitCount(counted) > masters / 2;
}
