import { describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError, type LockService } from 'nestjs-redlock';
import type { OnHeld } from '../../../lib/core/observer.js';
import { holdOr } from '../../../lib/nest/with-lock.decorator.js';

/** A service that refuses every lock, and what the refusals were to count as. */
function refusing() {
  const asked: OnHeld[] = [];
  const hold = async (resources: readonly string[], _: object, onHeld: OnHeld = 'fail'): Promise<never> => {
    asked.push(onHeld);
    throw new LockNotAcquiredError(resources, [], 0, 0);
  };
  return { asked, service: { hold } as unknown as LockService };
}

describe('A method whose lock another holder has', () => {
  it('fails, which counts as a failure', async () => {
    const { asked, service } = refusing();
    await expect(holdOr(service, ['a'], {})).rejects.toBeInstanceOf(LockNotAcquiredError);
    await expect(holdOr(service, ['a'], { onLocked: 'throw' })).rejects.toBeInstanceOf(LockNotAcquiredError);
    expect(asked).toEqual(['fail', 'fail']);
  });

  it('is skipped or replaced if its options say so, which counts as no failure', async () => {
    const { asked, service } = refusing();
    await expect(holdOr(service, ['a'], { onLocked: 'skip' })).resolves.toEqual({ otherwise: undefined });
    await expect(holdOr(service, ['a'], { onLocked: () => 'busy' })).resolves.toEqual({ otherwise: 'busy' });
    expect(asked).toEqual(['skip', 'skip']);
  });
});
