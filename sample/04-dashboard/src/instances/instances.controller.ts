import { Controller, HttpCode, NotFoundException, Param, Post } from '@nestjs/common';
import { Timeline } from '../live/timeline.js';
import { isInstanceCommand } from './instance.js';
import { Instances } from './instances.js';

@Controller('instances')
export class InstancesController {
  constructor(
    private readonly instances: Instances,
    private readonly timeline: Timeline,
  ) {}

  @Post(':name/:command')
  @HttpCode(204)
  command(@Param('name') name: string, @Param('command') command: string): void {
    if (!isInstanceCommand(command)) throw new NotFoundException(`instances do not know how to ${command}`);
    const instance = this.instances.find(name);
    this.timeline.record({ kind: 'command', target: `instance ${name}`, command });
    instance.carryOut(command);
  }
}
