// The configurations of section 10.
import { NoteModel, type NoteOptions } from './note.model.js';
import { configurationsOf, type Section } from './section.js';

const note = configurationsOf((options: NoteOptions) => new NoteModel(options), { sorted: true });

const [set, setTwice] = [['set'], ['set', 'set']] as const;
const twoHolders: NoteOptions = { masters: 3, holders: [set, set], losses: 0 };
const oneLost: NoteOptions = { ...twoHolders, losses: 1 };
const oneLostOfOld: NoteOptions = { ...oneLost, written: true };
/** Three holders get; the first one may set. */
const twoReaders: NoteOptions = { ...twoHolders, holders: [set, [], []] };
const vanishing: NoteOptions = { ...twoHolders, deletions: 2 };

export const noteSections: readonly Section[] = [
  {
    title: 'Note: what was set last, for the next holder (section 10)',
    holds: [
      ...note.holds(twoHolders, { 'two holders, two sets each': { holders: [setTwice, setTwice], quick: true } }),
      ...note.holds(oneLost, {
        'one set each, one loss': { quick: true },
        'one set each, three losses, never of the value on a majority': { losses: 3, quick: true },
        'two sets each, three losses, never of the value on a majority': { holders: [setTwice, setTwice], losses: 3 },
        'sets repeated after an unknown result, two losses': {
          holders: [
            ['set', 'repeat'],
            ['set', 'repeat'],
          ],
          losses: 2,
          quick: true,
        },
        'three holders, one set each, one loss': { holders: [set, set, set] },
        'five masters, two of them lose their data': { masters: 5, losses: 2 },
      }),
      ...note.holds(oneLostOfOld, {
        'all masters have an entry, one set each, four losses': { losses: 4 },
        'all masters have an entry, one set each, two older copies come back': { losses: 2, stale: true, quick: true },
        'all masters have an entry, three holders, one set each, one loss': { holders: [set, set, set] },
      }),
      ...note.holds(twoReaders, {
        'three holders, one of them sets, two losses': { losses: 2 },
      }),
    ],
    breaks: [
      ...note.breaks(twoHolders, {
        'no claim on read':
          'B opens behind the first write of A and does not read it; A is acknowledged by the masters that B opened on',
        'an equal number is accepted': 'A and B open with one number, and what B has not read is acknowledged',
        'never all N replies': 'a note that was never set cannot be opened',
        'a lower version replaces a higher one': 'a late write of A replaces what B has set',
        'a claim expires': 'm1 forgets the claim of B, and accepts the set of A',
        'a later get answers from memory': 'A gets; B sets; A gets the same again',
        'sequence not raised for the next value': {
          holders: [setTwice, []],
          story: 'm1 has the value that was given up, and acknowledges the next one without storing it',
        },
      }),
      ...note.breaks(twoReaders, {
        'no write-back':
          'the set of A is on m1; B returns it from there; C opens on m2 and m3, and returns the value before it',
        'nothing is not written back': 'the set of A is on m1; B finds nothing on m2 and m3; C returns the set',
        'write-back skipped when a quorum agrees': 'the same: m2 and m3 agree, and m1 has not answered',
        'write-back under the old version': {
          written: true,
          story: 'the set of A is on m1; B returns the value before it; C finds the set newer, and revives it',
        },
        'an open makes the entry count': {
          losses: 1,
          quick: false,
          story: 'm1 loses the set of A; the open of B leaves a claim there, with which m1 counts for C',
        },
      }),
      ...note.breaks(oneLost, {
        'any quorum of replies counts': 'A sets on m1 and m2; m1 loses its data; B asks m1 and m3, and finds nothing',
        'a refused open counts':
          'm1 loses the claim of A; B, with a smaller number, is refused by m2, reads it, and sets on m1 and m3',
        'scripts without the noted `run` and `from`': 'm1 loses the claim of B, and accepts the set of A',
      }),
      ...note.breaks(oneLostOfOld, {
        'no quarantine, or an open that outlasts it':
          'm1 answers A and loses its data; B opens there with a smaller number, and sets; A does not find it',
        'a master is noted in its quarantine': 'the same: B opens during the quarantine, and sets after it',
        'a newer value expires before an older one': {
          losses: 0,
          story: 'the set of A did not reach m3 and expires; B returns the value before it',
        },
        'a majority loses the value': {
          losses: 2,
          majorityLost: true,
          story: 'a limit: the set of A was on m1 and m2; B returns the value before it, without an error',
        },
      }),
    ],
  },
  {
    title: 'Note: a holder that has lost the lock cannot set (Protocol 10.5)',
    holds: note.holds(vanishing, {
      'the key of A vanishes from two masters': { quick: true },
      'the key of A vanishes from two masters, one loss': { losses: 1 },
    }),
    breaks: note.breaks(vanishing, {
      'a write while the key is not ours': 'the key of A vanishes from m1 and m2, where B acquires; A sets there',
    }),
  },
];
