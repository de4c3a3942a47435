// The configurations of Sentinel groups.
import { type Configuration, LIMIT, type Section, type Story, type Weakened } from './section.js';
import { SentinelModel, type SentinelOptions } from './sentinel.model.js';

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
      holds('one failover', one),
      holds('one sentinel, a failover and a failback', { ...one, sentinels: 1, listed: 1, failovers: 2 }, true),
      holds('a failover and a failback, T = 1', failback),
      holds('five sentinels, T = 1', five),
    ],
    breaks: [
      breaks('no view', {
        ...one,
        without: ['votes count without a view'],
        story: 'Q is promoted and votes after W_s; P, which calls itself master, still grants L',
      }),
      breaks('a view older than H counts', {
        ...one,
        viewAge: 2,
        story: 'L views; Q is promoted and marked; P grants L, whose lock outlives the quarantine',
      }),
      breaks('W in place of W_s', { ...one, wait: 2, story: 'the same with a view in time, and a shorter quarantine' }),
      breaks('one sentinel confirms a vote', {
        ...oneTick,
        without: ['one sentinel is enough for a vote'],
        story: 's3 has not heard of the failover, and confirms P for ever',
      }),
      breaks('one sentinel is enough for a marker', {
        ...oneTick,
        without: ['one sentinel is enough for a marker'],
        story: 'only the leader names Q; its quarantine ends before the others stop confirming P',
      }),
      breaks('a majority of three listed sentinels of five', {
        ...five,
        without: ['a majority of the listed sentinels is enough'],
        listed: 3,
        story: 's1 and s2 confirm P for L; s4 and s5 name Q to X',
      }),
      breaks('a view compares the address only', {
        ...failback,
        without: ['a view compares the address only'],
        slow: true,
        story: 's1 names P as before, s3 names P again: X marks P although a majority names Q in between',
      }),
    ],
  },
];

function holds(name: string, options: SentinelOptions, quick = false): Configuration {
  return { name, limit: LIMIT, quick, model: () => new SentinelModel(options) };
}

function breaks(name: string, { story, slow = false, ...options }: SentinelOptions & Story): Weakened {
  return { name, limit: LIMIT, story, quick: !slow, model: () => new SentinelModel(options) };
}
