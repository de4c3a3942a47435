import { describe, expect, it } from '@jest/globals';
import { PROTOCOL, protocolProblems } from '../../../scripts/docs/protocol.mjs';

/** Made at run time, so that the check does not take what this file feeds it for citations. */
const protocol = (numbers: string): string => ['Protocol', numbers].join(' ');
const cite = (numbers: string): string => `// ${protocol(numbers)}`;
const page = (text: string) => ({ name: PROTOCOL, text });
const CITED = [
  { name: 'lib/redlock/lease.ts', text: cite('1.1, 1.2 and 2.1') },
  { name: 'test/model/lease.ts', text: cite('1.1') },
  { name: 'test/unit/lease.spec.ts', text: `${cite('1.1')}\n${cite('1.2 and 2.1')}` },
];
const RULES = '- **1.1** One.\n- **1.2** Two,\n  on two lines. ∅\n\n## Two\n\n- **2.1** Three. ∅\n';

describe('The check of the protocol', () => {
  it('names a rule that the code, the model or a test does not cite', () => {
    expect(protocolProblems([page(RULES), ...CITED.slice(1)])).toEqual([
      { file: PROTOCOL, line: 1, message: `no code cites ${protocol('1.1')}` },
      { file: PROTOCOL, line: 2, message: `no code cites ${protocol('1.2')}` },
      { file: PROTOCOL, line: 7, message: `no code cites ${protocol('2.1')}` },
    ]);
    const [code, model, test] = CITED;
    expect(protocolProblems([page(RULES), code!, test!])).toEqual([
      { file: PROTOCOL, line: 1, message: `no model cites ${protocol('1.1')}` },
    ]);
    expect(protocolProblems([page(RULES), code!, model!])).toHaveLength(3);
  });

  it('names file and line of a citation that has no rule', () => {
    const stray = { name: 'test/unit/a.spec.ts', text: `\n${cite('1.1 and 3.4')}` };
    expect(protocolProblems([page(RULES), ...CITED, stray])).toEqual([
      { file: 'test/unit/a.spec.ts', line: 2, message: `${PROTOCOL} has no rule 3.4` },
    ]);
  });

  it('names a rule that the model cites although it is marked as left out', () => {
    const model = { name: 'test/model/more.ts', text: cite('2.1') };
    expect(protocolProblems([page(RULES), ...CITED, model])).toEqual([
      { file: PROTOCOL, line: 7, message: `the model cites ${protocol('2.1')}: take its ∅ away` },
    ]);
  });

  it('names a number that is used twice, or left out', () => {
    const text = RULES.replace('1.2', '1.1').replace('2.1', '2.2');
    expect(protocolProblems([page(text), ...CITED]).map(({ message }) => message)).toEqual(
      expect.arrayContaining(['rule 1.1 does not follow 1.1', 'rule 2.2 does not follow 1.1']),
    );
  });
});
