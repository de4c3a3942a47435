import { type Configuration, LIMIT, type Section, type Story, type Weakened } from './section.js';
import { StandstillModel, type StandstillOptions } from './standstill.model.js';

const once: StandstillOptions = { masters: 3, stands: 1, stand: 1 };
const twice: StandstillOptions = { ...once, stands: 2 };
const five: StandstillOptions = { ...once, masters: 5, atOnce: 1 };

const standstill: Section = {
  title: 'Standstill: the clocks of a client, or of masters, are behind or ahead',
  holds: [
    holds('one standstill of one or two ticks', { ...once, stand: 2 }, true),
    holds('two standstills', twice, true),
    holds('two standstills, and answers that others overtake', { ...twice, overtaken: true }),
    holds('slow answers, before the reading', { ...once, delay: 'before' }),
    holds('slow answers, after the reading', { ...once, delay: 'after' }),
    holds('a standstill, and one master is set by as much', { ...once, sets: [1] }, true),
    holds('a standstill, and one master is set further', { ...once, sets: [2] }, true),
    holds('two standstills, and slow answers', { ...twice, delay: 'after', atOnce: 2 }),
    holds('two standstills, and one master is set', { ...twice, sets: [1] }),
    holds(
      'two of three are set by different amounts, and all answer',
      { ...once, stands: 0, sets: [1, 2], complete: true },
      true,
    ),
    holds('a master that is met late', { ...twice, stand: 2, late: 1 }, true),
    holds(
      'two masters that are met late, and answers that others overtake',
      { ...once, late: 2, overtaken: true },
      true,
    ),
    holds('five masters, two of which are judged at a time', { ...five, atOnce: 2 }, true),
    holds('five masters, two standstills, and one is set', { ...five, stands: 2, sets: [1] }),
    holds('five masters, and two are set by the same amount', { ...five, sets: [1, 1] }),
  ],
  breaks: [
    breaks('the samples are forgotten', {
      ...twice,
      without: ['the samples are forgotten'],
      story: 'the clocks stand still again before the masters answer anew: nothing is left to compare with',
    }),
    breaks('what no answers decide is forgotten', {
      ...once,
      without: ['what no answers decide is forgotten'],
      story: 'the first masters to answer are judged before the others are back',
    }),
    breaks('one other master is enough', {
      ...once,
      stands: 0,
      sets: [1],
      without: ['one other master is enough'],
      story: 'a master whose clock was set passes for a standstill of the client',
    }),
    breaks('one master shows a standstill of all', {
      ...once,
      stands: 0,
      sets: [1],
      late: 1,
      without: ['one master shows a standstill of all'],
      story:
        'a master is set, and no other has answered yet that can be compared: the others seem to have been set back',
    }),
    breaks('a master that moved further is alike', {
      ...once,
      stands: 0,
      sets: [1, 2],
      complete: true,
      without: ['a master that moved further is alike'],
      story: 'two masters are set by different amounts, and pass for a standstill',
    }),
    breaks('an answer from before is taken', {
      ...once,
      overtaken: true,
      without: ['an answer from before is taken'],
      story: 'a master answers before the standstill, and its answer arrives when its samples have been shifted',
    }),
    breaks('a sample from after the standstill is shifted', {
      ...once,
      late: 1,
      without: ['a sample from after the standstill is shifted'],
      story: 'a master is met while the standstill is judged, and seems to have been set back',
    }),
  ],
};

export const standstillSections: readonly Section[] = [standstill];

function holds(name: string, options: StandstillOptions, quick = false): Configuration {
  return { name, limit: LIMIT, quick, model: () => new StandstillModel(options) };
}

function breaks(name: string, { story, slow, ...options }: StandstillOptions & Story): Weakened {
  return { name, story, limit: LIMIT, quick: !slow, model: () => new StandstillModel(options) };
}
