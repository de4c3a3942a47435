// Runs the specs in the order in which they are named on the command line: the nearest first.
import { isAbsolute, join } from 'node:path';
import TestSequencer from '@jest/test-sequencer';
import { root } from '../../../scripts/run.mjs';

export default class Sequencer extends TestSequencer {
  sort(tests) {
    const order = process.argv.map((argument) => (isAbsolute(argument) ? argument : join(root, argument)));
    const rank = new Map(order.map((path, index) => [path, index]));
    return [...tests].sort((a, b) => rank.get(a.path) - rank.get(b.path));
  }
}
