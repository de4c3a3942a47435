/**
 * A page for operators: the masters, the locks, recent events. It needs no other package and no build step.
 *
 * @packageDocumentation
 */
export type {
  DashboardGuard,
  RedlockDashboardAsyncOptions,
  RedlockDashboardOptions,
  RedlockDashboardPlacement,
  RedlockDashboardSettings,
} from './options.js';
export { RedlockDashboardModule } from './redlock-dashboard.module.js';
