import { configurationsOf, type Section } from './section.js';
import { StandstillModel, type StandstillOptions } from './standstill.model.js';

const standstill = configurationsOf((options: StandstillOptions) => new StandstillModel(options));

const once: StandstillOptions = { masters: 3, stands: 1, stand: 1 };
const twice: StandstillOptions = { ...once, stands: 2 };
const five: StandstillOptions = { ...once, masters: 5, atOnce: 1 };

export const standstillSections: readonly Section[] = [
  {
    title: 'Standstill: the clocks of a client, or of masters, are behind or ahead',
    holds: [
      ...standstill.holds(once, { 'one standstill of one or two ticks': { stand: 2, quick: true } }),
      ...standstill.holds(twice, {
        'two standstills': { quick: true },
        'two standstills, and answers that others overtake': { overtaken: true },
      }),
      ...standstill.holds(once, {
        'slow answers, before the reading': { delay: 'before' },
        'slow answers, after the reading': { delay: 'after' },
        'a standstill, and one master is set by as much': { sets: [1], quick: true },
        'a standstill, and one master is set further': { sets: [2], quick: true },
      }),
      ...standstill.holds(twice, {
        'two standstills, and slow answers': { delay: 'after', atOnce: 2 },
        'two standstills, and one master is set': { sets: [1] },
      }),
      ...standstill.holds(once, {
        'two of three are set by different amounts, and all answer': {
          stands: 0,
          sets: [1, 2],
          complete: true,
          quick: true,
        },
      }),
      ...standstill.holds(twice, { 'a master that is met late': { stand: 2, late: 1, quick: true } }),
      ...standstill.holds(once, {
        'two masters that are met late, and answers that others overtake': { late: 2, overtaken: true, quick: true },
      }),
      ...standstill.holds(five, {
        'five masters, two of which are judged at a time': { atOnce: 2, quick: true },
        'five masters, two standstills, and one is set': { stands: 2, sets: [1] },
        'five masters, and two are set by the same amount': { sets: [1, 1] },
      }),
    ],
    breaks: [
      ...standstill.breaks(twice, {
        'the samples are forgotten':
          'the clocks stand still again before the masters answer anew: nothing is left to compare with',
      }),
      ...standstill.breaks(once, {
        'what no answers decide is forgotten': 'the first masters to answer are judged before the others are back',
        'one other master is enough': {
          stands: 0,
          sets: [1],
          story: 'a master whose clock was set passes for a standstill of the client',
        },
        'one master shows a standstill of all': {
          stands: 0,
          sets: [1],
          late: 1,
          story:
            'a master is set, and no other has answered yet that can be compared: the others seem to have been set back',
        },
        'a master that moved further is alike': {
          stands: 0,
          sets: [1, 2],
          complete: true,
          story: 'two masters are set by different amounts, and pass for a standstill',
        },
        'an answer from before is taken': {
          overtaken: true,
          story: 'a master answers before the standstill, and its answer arrives when its samples have been shifted',
        },
        'a sample from after the standstill is shifted': {
          late: 1,
          story: 'a master is met while the standstill is judged, and seems to have been set back',
        },
      }),
    ],
  },
];
