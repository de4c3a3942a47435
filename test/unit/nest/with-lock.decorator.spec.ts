import { describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError, type LockService } from 'nestjs-redlock';
import type { OnHeld } from '../../../lib/core/observer.js';
import { holdOr } from '../../../lib/nest/with-lock.decorator.js';

const WHERE = '@WithLock on Jobs.run';

/** A service that refuses every lock, what the refusals were to count as, and the skips that were reported to it. */
function refusing() {
  const asked: OnHeld[] = [];
  const skips: unknown[] = [];
  const noteSkip = (caller: string, error: LockNotAcquiredError): void => void skips.push([caller, error.resources]);
  const hold = async (resources: readonly string[], _: object, onHeld: OnHeld = 'fail'): Promise<never> => {
    asked.push(onHeld);
    throw new LockNotAcquiredError(resources, [], 0, 0);
  };
  return { asked, skips, service: { hold, noteSkip } as unknown as LockService };
}

describe('A method whose lock another holder has', () => {
  it('fails, which counts as a failure', async () => {
    const { asked, skips, service } = refusing();
    await expect(holdOr(service, ['a'], {}, WHERE)).rejects.toBeInstanceOf(LockNotAcquiredError);
    await expect(holdOr(service, ['a'], { onLocked: 'throw' }, WHERE)).rejects.toBeInstanceOf(LockNotAcquiredError);
    expect(asked).toEqual(['fail', 'fail']);
    expect(skips).toEqual([]);
  });

  it('is skipped or replaced if its options say so, which counts as no failure', async () => {
    const { asked, skips, service } = refusing();
    await expect(holdOr(service, ['a'], { onLocked: 'skip' }, WHERE)).resolves.toEqual({ otherwise: undefined });
    await expect(holdOr(service, ['a'], { onLocked: () => 'busy' }, WHERE)).resolves.toEqual({ otherwise: 'busy' });
    expect(asked).toEqual(['skip', 'skip']);
    expect(skips).toEqual([
      [WHERE, ['a']],
      [WHERE, ['a']],
    ]);
  });
});
