import { Controller, Param, Post, ServiceUnavailableException } from '@nestjs/common';
import { LockService, WithLock } from 'nestjs-redlock';
import { Carrier } from './carrier.js';

/** Number of concurrent calls that the carrier allows to all instances together. */
export const CALLS_AT_A_TIME = 5;

@Controller('orders/:id/label')
export class LabelsController {
  constructor(
    private readonly carrier: Carrier,
    private readonly locks: LockService,
  ) {}

  @Post()
  @WithLock('carrier', {
    permits: CALLS_AT_A_TIME,
    wait: '10s',
    onLocked: () => {
      throw new ServiceUnavailableException('the carrier is busy: repeat in a moment');
    },
  })
  async print(@Param('id') id: string): Promise<string> {
    // Without its permit, a call must not go on beside five others.
    return this.carrier.label(id, this.locks.current('carrier')?.signal);
  }
}
