/** The steps of the model of a cluster, by what happens. A step is a number while the model is explored. */
export const STEPS = [
  'tick',
  // Clients.
  'begin',
  'ask',
  'view',
  'map',
  'seal',
  'read',
  'write',
  // Data and processes.
  'empty restart',
  'stale restart',
  'stale key',
  'flush',
  // Owner of the partition.
  'election',
  'vote',
  'win',
  'win with the key',
  'give up',
  'takeover',
  'takeover with the key',
  'move',
  'forced move',
  'aborted move',
  'atomic move',
  'migrate key',
  'migrate seal',
  'claim',
  'abort',
  'reclaim',
  'move of other slots',
  // The bus.
  'hear',
  'assign',
  'cut',
  'pause',
  'connect',
] as const;

export type ModelStep = (typeof STEPS)[number];
