// Without this, jest knows of a fresh clone only how large its files are, and begins the longest suites last, when one of
// the workers has nothing left to do.
const { default: Sequencer } = require('@jest/test-sequencer');

/** The suites that take the most time, the longest first. */
const LONGEST = [
  'test/simulation/mutants/mutants.spec.ts',
  'test/integration/guard.spec.ts',
  'test/integration/torture.spec.ts',
  'test/model/model.spec.ts',
  'test/simulation/jobs/mutants.spec.ts',
  'test/simulation/jobs/jobs.spec.ts',
  'test/e2e/lost-masters.spec.ts',
  'test/integration/fencing.spec.ts',
  'test/simulation/model.spec.ts',
  'test/e2e/dashboard.spec.ts',
  'test/integration/bounds.spec.ts',
  'test/integration/waiting-fairness.spec.ts',
  'test/integration/cli-doctor.spec.ts',
  'test/integration/guard-identity.spec.ts',
  'test/e2e/refusals.spec.ts',
];

module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const rank = ({ path }) => {
      const index = LONGEST.findIndex((suite) => path.endsWith(suite));
      return index < 0 ? LONGEST.length : index;
    };
    return [...super.sort(tests)].sort((one, other) => rank(one) - rank(other));
  }
};
