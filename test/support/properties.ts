import fc from 'fast-check';

/** Seed of all properties unless `PROPERTY_SEED` says otherwise. */
const SEED = 20_261_121;
/** A machine that is slow makes fewer runs instead of none: milliseconds for one property. */
const TIME_LIMIT = 20_000;

// The same runs everywhere: a random seed would fail a change that has nothing to do with what it found. To search, run
// with `PROPERTY_SEED=<number>`; a failure prints seed and path, which `fc.assert(..., { seed, path })` replays.
fc.configureGlobal({ seed: Number(process.env['PROPERTY_SEED'] ?? SEED) });
fc.installGlobalPlugin(fc.interruptAfterTimeLimit(TIME_LIMIT));

export { fc };
