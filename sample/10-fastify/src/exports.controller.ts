import { Controller, Get, HttpCode, Param, Post, StreamableFile, UseInterceptors } from '@nestjs/common';
import { LockInterceptor, WithLock } from 'nestjs-redlock';
import { ExportsService } from './exports.service.js';

@Controller('exports/:id')
export class ExportsController {
  constructor(private readonly exports: ExportsService) {}

  /**
   * Locked until the last row has been written, or until the client has gone. `@WithLock` would be too short here: the
   * method returns when the stream begins.
   */
  @Get()
  @UseInterceptors(
    LockInterceptor((context) => keyOf(context.switchToHttp().getRequest<Request>().params.id), '5s', { wait: 0 }),
  )
  read(@Param('id') id: string): StreamableFile {
    return new StreamableFile(this.exports.rows(id), { type: 'text/csv' });
  }

  /** Locked until the promise has settled, and by the same key: an export is not read while it is refreshed. */
  @Post('refresh')
  @HttpCode(204)
  @WithLock((id: string) => keyOf(id), '5s', { wait: 0 })
  async refresh(@Param('id') id: string): Promise<void> {
    await this.exports.refresh(id);
  }
}

/** What the key needs of a request; Fastify and Express have it alike. */
interface Request {
  params: { id: string };
}

function keyOf(id: string): string {
  return `export:${id}`;
}
