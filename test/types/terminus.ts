// Compile-only: `npm run typecheck` fails where something compiles that must not, or does not that must.
import { Controller, Get, Module } from '@nestjs/common';
import { HealthCheck, type HealthCheckResult, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import type { MasterStatus } from 'nestjs-redlock';
import { RedlockHealthIndicator, RedlockHealthModule } from 'nestjs-redlock/terminus';

@Controller('health')
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly redlock: RedlockHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check(): Promise<HealthCheckResult> {
    return this.health.check([
      () => this.redlock.isHealthy(),
      () => this.redlock.isHealthy('billing locks', { service: 'billing' }),
    ]);
  }

  async details(): Promise<readonly MasterStatus[]> {
    const { status, masters, quorum } = (await this.redlock.isHealthy()).redlock;
    const isUp: boolean = status === 'up' && quorum > 0;
    // @ts-expect-error the result has the key that was given
    const none = (await this.redlock.isHealthy('locks')).redlock;
    // @ts-expect-error the health check knows no other option
    await this.redlock.isHealthy('locks', { name: 'billing' });
    return isUp || none === undefined ? masters : [];
  }
}

@Module({ imports: [TerminusModule, RedlockHealthModule], controllers: [HealthController] })
export class HealthModule {}
