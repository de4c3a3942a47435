import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { RedlockModule } from 'nestjs-redlock';
import { JobHistory, LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { boot, closeAll } from '../e2e/support/applications.js';
import { startMasters } from '../support/masters.js';

@Injectable()
class Jobs {
  @LockedInterval('1h', { name: 'report' })
  async report(): Promise<void> {
    await Promise.resolve();
  }
}

@Injectable()
class OtherJobs {
  @LockedInterval('1h', { name: 'report', service: 'other' })
  async report(): Promise<void> {
    await Promise.resolve();
  }
}

function bootOn(urls: readonly string[], ofOther: { readonly masters: string[]; readonly keyPrefix?: string }) {
  return boot({
    imports: [
      RedlockModule.forRoot({ masters: [...urls], restartGuard: false }),
      RedlockModule.forRoot({ name: 'other', restartGuard: false, ...ofOther }),
      ...[ScheduleModule.forRoot(), RedlockScheduleModule],
    ],
    providers: [Jobs, OtherJobs],
  });
}

afterEach(closeAll);

describe('Jobs of one name in two lock services', () => {
  it('are refused on the same masters, where they would share a record', async () => {
    await using masters = await startMasters(2);
    const [first = '', second = ''] = masters.urls;
    await expect(bootOn(masters.urls, { masters: [second] })).rejects.toThrow(
      'must be different for each job on the same masters, and @LockedInterval on Jobs.report has the same',
    );
    const app = await bootOn([first], { masters: [second] });
    expect((await app.get(JobHistory).overview()).map(({ name }) => name)).toEqual(['report', 'report']);
  });

  it('are two jobs under different key prefixes', async () => {
    await using masters = await startMasters(1);
    const app = await bootOn(masters.urls, { masters: [...masters.urls], keyPrefix: 'other' });
    expect(await app.get(JobHistory).overview()).toHaveLength(2);
  });
});
