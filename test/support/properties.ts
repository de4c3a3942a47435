import fc from 'fast-check';

/** Seed of all properties unless `PROPERTY_SEED` overrides it. */
const SEED = 20_261_121;
/** Milliseconds for one property: a slow machine makes fewer runs instead of failing. */
const TIME_LIMIT = 20_000;

// The seed is fixed: a random one would fail changes that have nothing to do with the finding. To search, run with
// `PROPERTY_SEED=<number>`. A failure prints its seed and path, which `fc.assert(..., { seed, path })` replays.
fc.configureGlobal({ seed: Number(process.env['PROPERTY_SEED'] ?? SEED) });
fc.installGlobalPlugin(fc.interruptAfterTimeLimit(TIME_LIMIT));

export { fc };
