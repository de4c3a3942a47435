/** In the first tier of `npm test`, long loads, simulations and properties are smaller than in the second one. */
const SHARE = Number(process.env['LOAD_SHARE'] ?? 1);

/** As much of a number as the tier makes, in a suite of both tiers. */
export const shareOf = (all: number): number => Math.ceil(all * SHARE);
