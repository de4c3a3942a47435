import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { RedlockHealthIndicator } from './redlock-health.indicator.js';

/** Provides and exports the {@link RedlockHealthIndicator}. */
@Module({ imports: [TerminusModule], providers: [RedlockHealthIndicator], exports: [RedlockHealthIndicator] })
export class RedlockHealthModule {}
