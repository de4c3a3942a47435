/** A line that an instance wrote before or after a run. */
export interface RunLine {
  readonly event: 'start' | 'end';
  readonly tick: number;
  readonly attempt: number;
  readonly instance: string;
  readonly at: number;
}

export function explain(story: {
  readonly lines: readonly RunLine[];
  readonly kills: readonly { readonly instance: string; readonly at: number }[];
  readonly recorded?: ReadonlyMap<string, { readonly outcome: string; readonly instance: string }>;
  readonly from: number;
  readonly until: number;
  readonly mayMiss?: (tick: number) => boolean;
  readonly mayRepeat?: (run: RunLine) => boolean;
}): {
  readonly counts: Readonly<
    Record<'scheduled' | 'once' | 'again' | 'excused' | 'missed' | 'doubled' | 'proved' | 'afterEnd', number>
  >;
  readonly table: string;
  readonly problems: readonly string[];
};
