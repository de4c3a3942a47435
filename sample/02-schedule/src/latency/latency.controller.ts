import { Controller, Get } from '@nestjs/common';
import { LatencyProbe, type Sample } from './latency.probe.js';

export interface Stats {
  acquisitions: readonly Sample[];
}

@Controller('stats')
export class LatencyController {
  constructor(private readonly probe: LatencyProbe) {}

  @Get()
  stats(): Stats {
    return { acquisitions: this.probe.samples };
  }
}
