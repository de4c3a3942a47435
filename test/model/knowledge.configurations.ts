// The configurations of what a holder learns: sections 6 and 7.
import { KnowledgeModel, type KnowledgeOptions } from './knowledge.model.js';
import { configurationsOf, type Section } from './section.js';

const knowledge = configurationsOf((options: KnowledgeOptions) => new KnowledgeModel(options), { sorted: true });

const three: KnowledgeOptions = { masters: 3 };

export const knowledgeSections: readonly Section[] = [
  {
    title: 'Extensions and releases: a holder that has lost the lock is told (Protocol 6.3, 6.4 and 7.6)',
    holds: knowledge.holds(three, {
      'three masters': { quick: true },
      'four masters': { masters: 4 },
    }),
    breaks: knowledge.breaks(three, {
      'an extension sets absent keys':
        'another holds m1 and m2 and lets them go; the next extension sets both again, and is granted',
      'a heal counts': 'm3 lacks the key; another holds m1 and m3; the heal sets m3, which counts with m2',
      'a request that was not answered in time counts':
        'm3 has not answered the acquisition; another holds m1 and m3; the late request sets m3, which counts with m2',
      'a granted round counts for a master, although a heal was under way':
        'an extension is granted while the heal of m3 is under way; another holds m1 and m3; then the heal is executed',
      'an unsure master that had the keys does not lack them':
        'another held m1 and m3; the heal sets m3: of three masters only m1 says that it lacks the key',
      'only another holder is a loss': 'another held m1 and m2, and has let them go',
      'a release tells nothing': 'another held m1 and m2; the work ends before the next extension',
      'a release ends when a quorum had the keys, unsure masters included':
        'another held m1 and m3, and m3 was set late; m2 and m3 had the key, and m1 is not heard',
      'one master that lacks the keys is a loss': 'm1 loses its data',
      'a silent master lacks the keys': 'two masters do not reply in time',
    }),
  },
];
