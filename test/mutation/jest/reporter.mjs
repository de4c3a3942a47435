// Sends the result of each spec to the process that started jest.
import { relative, sep } from 'node:path';
import { root } from '../../../scripts/run.mjs';

export default class Reporter {
  onTestResult({ path }, { testResults, testExecError, failureMessage, perfStats }) {
    const failed = testResults.find(({ status }) => status === 'failed');
    const error = testExecError ?? (failureMessage && !failed ? { message: failureMessage } : undefined);
    process.send?.({
      ends: relative(root, path).split(sep).join('/'),
      milliseconds: perfStats.end - perfStats.start,
      longest: Math.max(0, ...testResults.map(({ duration }) => duration ?? 0)),
      failure: failed?.fullName ?? error?.message?.split('\n', 1)[0],
    });
  }
}
