import { Controller, Get } from '@nestjs/common';
import { JobHistory, type JobReport } from 'nestjs-redlock/schedule';

@Controller('jobs')
export class JobsController {
  constructor(private readonly history: JobHistory) {}

  /** What the jobs did on all instances: every instance gives the same answer, apart from `lastSkip`. */
  @Get()
  jobs(): Promise<readonly JobReport[]> {
    return this.history.list();
  }
}
