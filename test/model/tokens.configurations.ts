// The configurations of section 9.
import { configurationsOf, type Section } from './section.js';
import { TokensModel, type TokensOptions } from './tokens.model.js';

const tokens = configurationsOf((options: TokensOptions) => new TokensModel(options));

const twoClients: TokensOptions = { masters: 3, keys: [0, 0], heals: 2, lostAnswers: 1 };
const oneLoss: TokensOptions = {
  ...twoClients,
  heals: 1,
  lostAnswers: 0,
  loss: { losses: 1, ticks: 3, quarantine: 2, ahead: [1, 0, 0] },
};
const undisturbed: TokensOptions = { masters: 3, keys: [0], heals: 0, lostAnswers: 0, rounds: 2 };

export const tokenSections: readonly Section[] = [
  {
    title: 'Tokens: unique and in order, whatever expires early (section 9)',
    holds: [
      ...tokens.holds(twoClients, {
        'two clients, two heals, one lost answer': {},
        'three clients': { keys: [0, 0, 0], heals: 0, lostAnswers: 0, quick: true },
        'five masters': { masters: 5, heals: 0, lostAnswers: 0 },
        'three clients, one of them with a colliding key': { keys: [0, 0, 1], heals: 0, lostAnswers: 0 },
      }),
      ...tokens.holds(oneLoss, {
        'two losses, quarantine longer than the difference of clocks': {
          heals: 0,
          loss: { ...oneLoss.loss!, losses: 2 },
        },
        'one loss, one heal, clocks agree': { loss: { losses: 1, ticks: 2, quarantine: 1, ahead: [0, 0, 0] } },
      }),
      ...tokens.holds(undisturbed, { 'a token stands after two rounds, whatever the counters are': { quick: true } }),
    ],
    breaks: [
      ...tokens.breaks(twoClients, {
        'draw without still-ours': 'A draws on m1 and confirms after B took the key there: both have one number',
        'confirm on any majority': {
          quick: false,
          story: 'A confirms on a master where it never drew, behind the draw of B',
        },
        'confirm on draws of a minority': 'the one master that B draws on has not seen the token of A',
        'drawn once, confirmed anywhere':
          'A drew on m1, lost its key to B and set it again: it confirms the number of B',
        'healed master stays in D': 'the same, with the other masters drawn anew',
        'healed master stays in D, its counter raised': {
          quick: false,
          story: 'the same: the raise changes nothing, since B drew a larger number',
        },
        'a master comes back into D before its heal is answered': {
          quick: false,
          story:
            'A draws on m1, and its heal is under way; B takes the key there and draws; the heal sets the key of A again',
        },
      }),
      ...tokens.breaks(oneLoss, {
        'answers of quarantined masters count':
          'm1 loses its counter; B draws on it at once, with a clock behind that of A',
        'quarantine shorter than the difference of clocks': {
          loss: { losses: 1, ticks: 4, quarantine: 1, ahead: [2, 0, 0] },
          story: 'm1 gives A its number; m2, which has lost its counter, gives B a smaller one',
        },
        'no floor': 'm1 loses its counter; after the quarantine it counts from one',
      }),
      ...tokens.breaks(undisturbed, {
        'drawn anew in each round': {
          rounds: 9,
          story: 'the largest counter stays ahead of the others by one: no token ever stands',
        },
      }),
    ],
  },
];
