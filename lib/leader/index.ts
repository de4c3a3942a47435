/**
 * Leader election: a method runs on one instance, for as long as that instance leads.
 *
 * @packageDocumentation
 */
export type { ElectionObserver, LeaderReport } from '../index.js';
export { type Leadership, LeadershipResignedError } from './campaign.js';
export { Elections, RedlockLeaderModule } from './elections.js';
export { Leader, type LeaderDecorator, type LeaderMethod, type LeaderOptions } from './leader.decorator.js';
