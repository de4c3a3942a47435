// What `npm run model` explores.
import { gateSections } from './gate.configurations.js';
import { knowledgeSections } from './knowledge.configurations.js';
import { noteSections } from './note.configurations.js';
import { type Section } from './section.js';
import { sharedSections } from './shared.configurations.js';
import { tokenSections } from './tokens.configurations.js';

export const sections: readonly Section[] = [
  ...knowledgeSections,
  ...gateSections,
  ...tokenSections,
  ...noteSections,
  ...sharedSections,
];
