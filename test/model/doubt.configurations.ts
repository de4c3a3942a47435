import { DoubtModel, type DoubtOptions } from './doubt.model.js';
import { type Configuration, LIMIT, type Section, type Story, type Weakened } from './section.js';

const three: DoubtOptions = { masters: 3, ttl: 2, suspend: 2, steps: 1, by: 2 };
const one: DoubtOptions = { ...three, masters: 1, suspend: 3, by: 3 };

const doubt: Section = {
  title: 'Doubt: the wall clock of a holder moves further than its monotonic clock',
  holds: [
    holds('one master, two steps forward or back, a suspension', { ...one, steps: 2 }, true),
    holds('one master on the machine of the holder', { ...one, steps: 2, sameHost: 1 }, true),
    holds('three masters, one step, a suspension or a stun', three),
    holds('answers to extensions are lost', { ...three, losesAnswers: true }),
    holds('T = 3, no step', { ...three, ttl: 3, suspend: 3, steps: 0 }),
    holds('two steps, no suspension', { ...three, steps: 2, suspend: 0 }),
    holds('one of three masters on the machine of the holder', { ...three, sameHost: 1 }),
    holds('a majority of the masters on the machine of the holder', { ...three, sameHost: 2 }),
    holds('all clocks are set forward together', { ...three, steps: 0, allSteps: 1 }),
    holds('the clocks of all masters are set back', { ...three, steps: 0, setBack: 1 }),
  ],
  breaks: [
    breaks('no doubt: the monotonic clock alone counts', {
      ...three,
      without: ['no doubt: the monotonic clock alone counts'],
      story: 'L is suspended; its keys end, and X takes them; L resumes and believes',
    }),
    breaks('the lock is believed during the doubt', {
      ...three,
      without: ['the lock is believed during the doubt'],
      story: 'the same, until the answers arrive',
    }),
    breaks('a minority ends the doubt', {
      ...three,
      sameHost: 1,
      without: ['a minority ends the doubt'],
      story: 'a master on the machine of L stood still with it, and still has the key',
    }),
    breaks('the clocks of a majority end the doubt', {
      ...three,
      sameHost: 2,
      without: ['the clocks of a majority end the doubt'],
      story: 'two masters stood still with L, and one of them lacks its key; on the third it has ended',
    }),
    breaks('a key that was set again counts', {
      ...three,
      without: ['a key that was set again counts'],
      story: 'X holds the lock and ends it while L is suspended; L resumes, and sets its keys again',
    }),
    breaks('a key that an earlier extension set again counts', {
      ...three,
      without: ['a key that an earlier extension set again counts'],
      story: 'the same, and an extension that was under way has set the keys again before L asks',
    }),
    breaks('a lead that began after the question is forgiven', {
      ...three,
      without: ['a lead that began after the question is forgiven'],
      story: 'the clock is set; one master answers; L is suspended before the next one does',
    }),
    breaks('an extension counts although its lead is longer than the validity', {
      ...three,
      without: ['an extension counts although its lead is longer than the validity'],
      story: 'X holds the lock and ends it while L is suspended; the extension that was under way is granted',
    }),
    breaks('a step back is not agreed on', {
      ...three,
      without: ['a step back is not agreed on'],
      story: 'L is suspended; its wall clock is set back by as much before it asks',
    }),
    breaks('the lock is kept through a step that is as long as its ttl', {
      ...three,
      neverKeeps: true,
      story: 'what the rule is for: the clock is set, two masters still have the key, and L goes on',
    }),
  ],
};

export const doubtSections: readonly Section[] = [doubt];

function holds(name: string, options: DoubtOptions, quick = false): Configuration {
  return { name, limit: LIMIT, quick, model: () => new DoubtModel(options) };
}

function breaks(name: string, { story, slow, ...options }: DoubtOptions & Story): Weakened {
  return { name, story, limit: LIMIT, quick: !slow, model: () => new DoubtModel(options) };
}
