import { Controller, HttpCode, NotFoundException, Param, ParseIntPipe, Post } from '@nestjs/common';
import { Timeline } from '../live/timeline.js';
import { isMasterCommand, LocalMasters } from './local-masters.js';

@Controller('masters')
export class MastersController {
  constructor(
    private readonly masters: LocalMasters,
    private readonly timeline: Timeline,
  ) {}

  @Post(':number/:command')
  @HttpCode(204)
  async command(@Param('number', ParseIntPipe) number: number, @Param('command') command: string): Promise<void> {
    if (!isMasterCommand(command)) throw new NotFoundException(`masters do not know how to ${command}`);
    const master = this.masters.find(number);
    // Recorded before its effects.
    this.timeline.record({ kind: 'command', target: `master ${number}`, command });
    await master.carryOut(command);
  }
}
