import { describe, expect, it } from '@jest/globals';
import { attemptJob } from '../../../lib/schedule/job-attempt.js';

const failureOf = (thrown: unknown) =>
  attemptJob('@LockedCron on Jobs.run', () => {
    throw thrown;
  });

class Unreadable extends Error {
  override get message(): string {
    throw new TypeError('from inside');
  }
}

describe('An attempt at a job', () => {
  it.each<[string, unknown, string]>([
    ['an error', new Error('out of paper'), 'out of paper'],
    ['an error whose message is a list', Object.assign(new Error(), { message: ['a', 'b'] }), '["a","b"]'],
    ['a string', 'out of paper', 'out of paper'],
    ['nothing', undefined, 'undefined'],
    ['an object without a prototype', Object.create(null), '{}'],
    ['an error whose message cannot be read', new Unreadable(), 'an error without a readable message'],
    ['a bigint', 1n, 'an error without a readable message'],
  ])('has a message as its failure, if the method throws %s', async (_, thrown, message) => {
    const failure = await failureOf(thrown);
    expect(failure?.error === thrown).toBe(true);
    expect(failure?.message).toBe(message);
  });
});
