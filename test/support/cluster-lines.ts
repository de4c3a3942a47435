/** One line of CLUSTER NODES. */
export interface NodeLine {
  readonly id: string;
  readonly port: number;
  /** `myself`, `master`, `slave`, `fail?`, `fail`, `handshake`, `noaddr`, ... */
  readonly flags: readonly string[];
  readonly isPrimary: boolean;
  /** Id of the primary of a replica. */
  readonly primary: string | undefined;
  readonly epoch: number;
  readonly connected: boolean;
  /** First and last slot of each range. */
  readonly ranges: readonly (readonly [first: number, last: number])[];
  /** Open moves, with the id of the other node. */
  readonly migrating: ReadonlyMap<number, string>;
  readonly importing: ReadonlyMap<number, string>;
}

export function parseNodes(text: string): NodeLine[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [id = '', address = '', flags = '', primary, , , epoch, link, ...slots] = line.trim().split(' ');
      const owned = slots.filter((slot) => !slot.startsWith('['));
      return {
        id,
        port: Number(/:(\d+)/.exec(address)?.[1]),
        flags: flags.split(','),
        isPrimary: flags.split(',').includes('master'),
        primary: primary === '-' ? undefined : primary,
        epoch: Number(epoch),
        connected: link === 'connected',
        ranges: owned.map((range) => {
          const [first = NaN, last = first] = range.split('-').map(Number);
          return [first, last] as const;
        }),
        migrating: moves(slots, '->-'),
        importing: moves(slots, '-<-'),
      };
    });
}

/** Moves as in `[93-<-292f8b...]`. */
function moves(slots: readonly string[], arrow: string): Map<number, string> {
  const open = slots.filter((slot) => slot.startsWith('[') && slot.includes(arrow));
  return new Map(
    open.map((slot) => {
      const [number, id = ''] = slot.slice(1, -1).split(arrow);
      return [Number(number), id];
    }),
  );
}

/** What a node says of itself. */
export async function ownLine(node: { readonly id: string; lines(): Promise<NodeLine[]> }): Promise<NodeLine> {
  return line(await node.lines(), node);
}

/** What the lines say of the node; fails if they do not know it. */
export function line(lines: readonly NodeLine[], node: { readonly id: string }): NodeLine {
  const found = lines.find(({ id }) => id === node.id);
  if (!found) throw new Error(`CLUSTER NODES does not list ${node.id}`);
  return found;
}

export function owns({ ranges, isPrimary }: NodeLine, slot: number): boolean {
  return isPrimary && ranges.some(([first, last]) => first <= slot && slot <= last);
}
