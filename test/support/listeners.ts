/**
 * From how many listeners on Node warns of a leak; 0 for never. As `getMaxListeners` of Node, which does not recognize the
 * signals of a test.
 */
export function maxListenersOf(signal: AbortSignal): unknown {
  const key = Object.getOwnPropertySymbols(signal).find(
    ({ description }) => description === 'events.maxEventTargetListeners',
  );
  return key && Reflect.get(signal, key);
}
