import { Controller, Get } from '@nestjs/common';
import { JobHistory, type JobReport } from 'nestjs-redlock/schedule';

@Controller('jobs')
export class JobsController {
  constructor(private readonly history: JobHistory) {}

  @Get()
  jobs(): Promise<readonly JobReport[]> {
    return this.history.list();
  }
}
