import 'reflect-metadata';
import { afterEach, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { RedlockModule } from 'nestjs-redlock';
import { type JobRun, LockedCron, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { buildClockShim } from '../support/clock-shim.js';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { boot, closeAll, logs } from './support/applications.js';

const HOUR = 3_600_000;
const ran: number[] = [];

@Injectable()
class Jobs {
  @LockedCron('* * * * * *', { name: 'tick', timeZone: 'UTC' })
  async tick({ scheduledFor }: JobRun): Promise<void> {
    ran.push(scheduledFor.getTime());
    await Promise.resolve();
  }
}

afterEach(async () => {
  await closeAll();
  ran.length = 0;
});

it('A job goes on if the clock of one master is an hour behind and another master goes down', async () => {
  using shim = buildClockShim();
  if (!shim) return;
  shim.step(-HOUR);
  await using healthy = await startMasters(2);
  const late = await RedisServer.start({ env: shim.env });
  try {
    const urls = [late.url, ...healthy.urls];
    const locks = RedlockModule.forRoot({ masters: urls, masterTimeout: '1s', restartGuard: false });
    await boot({ imports: [locks, ScheduleModule.forRoot(), RedlockScheduleModule], providers: [Jobs] });
    await eventually(() => ran.length >= 2, 30_000);
    await healthy.servers[1]?.stop();
    const { length } = ran;
    await eventually(() => ran.length >= length + 4, 30_000);
    expect(new Set(ran).size).toBe(ran.length);
    const wrong = `warn the clock of 127.0.0.1:${late.port} is 60.0 min behind the others, which decide when jobs run: correct it`;
    expect(logs.filter((line) => line.includes('the others'))).toEqual([wrong]);
  } finally {
    await late.stop();
  }
}, 90_000);
