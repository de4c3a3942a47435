import { DoubtModel, type DoubtOptions } from './doubt.model.js';
import { configurationsOf, type Section } from './section.js';

const doubt = configurationsOf((options: DoubtOptions) => new DoubtModel(options));

const three: DoubtOptions = { masters: 3, ttl: 2, suspend: 2, steps: 1, by: 2 };
const one: DoubtOptions = { ...three, masters: 1, suspend: 3, by: 3 };

export const doubtSections: readonly Section[] = [
  {
    title: 'Doubt: the wall clock of a holder moves further than its monotonic clock',
    holds: [
      ...doubt.holds(one, {
        'one master, two steps forward or back, a suspension': { steps: 2, quick: true },
        'one master on the machine of the holder': { steps: 2, sameHost: 1, quick: true },
      }),
      ...doubt.holds(three, {
        'three masters, one step, a suspension or a stun': {},
        'answers to extensions are lost': { losesAnswers: true },
        'T = 3, no step': { ttl: 3, suspend: 3, steps: 0 },
        'two steps, no suspension': { steps: 2, suspend: 0 },
        'one of three masters on the machine of the holder': { sameHost: 1 },
        'a majority of the masters on the machine of the holder': { sameHost: 2 },
        'all clocks are set forward together': { steps: 0, allSteps: 1 },
        'the clocks of all masters are set back': { steps: 0, setBack: 1 },
      }),
    ],
    breaks: doubt.breaks(three, {
      'no doubt: the monotonic clock alone counts':
        'L is suspended; its keys end, and X takes them; L resumes and believes',
      'the lock is believed during the doubt': 'the same, until the answers arrive',
      'a minority ends the doubt': {
        sameHost: 1,
        story: 'a master on the machine of L stood still with it, and still has the key',
      },
      'the clocks of a majority end the doubt': {
        sameHost: 2,
        story: 'two masters stood still with L, and one of them lacks its key; on the third it has ended',
      },
      'a key that was set again counts':
        'X holds the lock and ends it while L is suspended; L resumes, and sets its keys again',
      'a key that an earlier extension set again counts':
        'the same, and an extension that was under way has set the keys again before L asks',
      'a lead that began after the question is forgiven':
        'the clock is set; one master answers; L is suspended before the next one does',
      'an extension counts although its lead is longer than the validity':
        'X holds the lock and ends it while L is suspended; the extension that was under way is granted',
      'a step back is not agreed on': 'L is suspended; its wall clock is set back by as much before it asks',
      'the lock is kept through a step that is as long as its ttl': {
        neverKeeps: true,
        story: 'what the rule is for: the clock is set, two masters still have the key, and L goes on',
      },
    }),
  },
];
