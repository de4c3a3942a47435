/** What an instance wrote: an event, or that `isLeader` was true between two readings of the clock. */
export type ElectionLine = { readonly instance: string; readonly term: number } & (
  | { readonly event: 'elected' | 'resigned' | 'lost' | 'changed'; readonly at: number }
  | { readonly event: 'leads'; readonly before: number; readonly after: number }
);

export function judge(story: {
  readonly lines: readonly ElectionLine[];
  readonly kills: readonly { readonly instance: string; readonly at: number }[];
}): {
  readonly counts: Readonly<Record<'elections' | 'overlaps' | 'smaller' | 'outOfOrder', number>>;
  readonly table: string;
  readonly problems: readonly string[];
  /** In milliseconds. */
  readonly afterKill: readonly number[];
  readonly afterResignation: readonly number[];
};
