/** The first tier of `npm test` makes a part of long loads and of the runs of long properties: the second one makes all. */
const SHARE = Number(process.env['LOAD_SHARE'] ?? 1);

/** The part of a number in a suite of both tiers. */
export const shareOf = (all: number): number => Math.ceil(all * SHARE);
