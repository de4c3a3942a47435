// The configurations of Sentinel groups.
import { configurationsOf, type Section } from './section.js';
import { SentinelModel, type SentinelOptions } from './sentinel.model.js';

const sentinel = configurationsOf((options: SentinelOptions) => new SentinelModel(options));

const one: SentinelOptions = {
  sentinels: 3,
  listed: 3,
  failovers: 1,
  ttl: 2,
  viewAge: 1,
  masterTimeout: 1,
  wait: 3,
};
const oneTick: SentinelOptions = { ...one, ttl: 1, masterTimeout: 0, wait: 2 };
const five: SentinelOptions = { ...oneTick, sentinels: 5 };
const failback: SentinelOptions = { ...oneTick, failovers: 2 };

export const sentinelSections: readonly Section[] = [
  {
    title: 'Sentinel: a group as one master, W_s = W + H',
    holds: [
      ...sentinel.holds(one, {
        'one failover': {},
        'one sentinel, a failover and a failback': { sentinels: 1, listed: 1, failovers: 2, quick: true },
      }),
      ...sentinel.holds(failback, { 'a failover and a failback, T = 1': {} }),
      ...sentinel.holds(five, { 'five sentinels, T = 1': {} }),
    ],
    breaks: [
      ...sentinel.breaks(one, {
        'no view': 'Q is promoted and votes after W_s; P, which calls itself master, still grants L',
        'a view older than H counts': {
          viewAge: 2,
          story: 'L views; Q is promoted and marked; P grants L, whose lock outlives the quarantine',
        },
        'W in place of W_s': { wait: 2, story: 'the same with a view in time, and a shorter quarantine' },
      }),
      ...sentinel.breaks(oneTick, {
        'one sentinel confirms a vote': 's3 has not heard of the failover, and confirms P for ever',
        'one sentinel is enough for a marker':
          'only the leader names Q; its quarantine ends before the others stop confirming P',
      }),
      ...sentinel.breaks(five, {
        'a majority of three listed sentinels of five': {
          without: ['a majority of the listed sentinels is enough'],
          listed: 3,
          story: 's1 and s2 confirm P for L; s4 and s5 name Q to X',
        },
      }),
      ...sentinel.breaks(failback, {
        'a view compares the address only': {
          quick: false,
          story: 's1 names P as before, s3 names P again: X marks P although a majority names Q in between',
        },
      }),
    ],
  },
];
