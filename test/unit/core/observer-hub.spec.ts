import { describe, expect, it } from '@jest/globals';
import { ObserverHub } from '../../../lib/core/observer-hub.js';

describe('ObserverHub', () => {
  it('implements no callback that no observer defines', () => {
    const hub = new ObserverHub().add({ masterLost: () => undefined });
    expect(Object.keys(hub.observer)).toEqual(['masterLost']);
    hub.add({ acquiring: () => undefined });
    expect(Object.keys(hub.observer)).toEqual(['masterLost', 'acquiring']);
  });

  it('calls an observer that precedes the others first', () => {
    const seen: string[] = [];
    const hub = new ObserverHub().add({ masterFound: () => void seen.push('first') });
    hub.precede({ masterFound: () => void seen.push('second') }).observer.masterFound?.('a');
    expect(seen).toEqual(['second', 'first']);
  });

  it('passes events to observers that are added later, too', () => {
    const seen: string[] = [];
    const hub = new ObserverHub().add({ masterFound: (master) => void seen.push(`first ${master}`) });
    const { observer } = hub;
    observer.masterFound?.('a');
    hub.add({ masterFound: (master) => void seen.push(`second ${master}`) });
    observer.masterFound?.('b');
    expect(seen).toEqual(['first a', 'first b', 'second b']);
  });

  it('reports what an observer throws, and calls the others', () => {
    const failures: unknown[] = [];
    const seen: string[] = [];
    const hub = new ObserverHub((error) => void failures.push(error)).add(
      {
        masterFound: () => {
          throw new Error('broken');
        },
      },
      { masterFound: (master) => void seen.push(master) },
    );
    hub.observer.masterFound?.('a');
    expect([failures, seen]).toEqual([[new Error('broken')], ['a']]);
  });
});
