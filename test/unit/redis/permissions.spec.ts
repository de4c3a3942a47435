import { expect, it } from '@jest/globals';
import type { RefusedReply } from '../../../lib/masters/master.interface.js';
import { MissingPermissions, type Trial } from '../../../lib/redis/permissions.js';
import { refusalFrom } from '../../../lib/redis/replies.js';

const REFUSED: RefusedReply = {
  kind: 'refused',
  code: 'NOPERM',
  reason: "The user executing the script can't run this command",
};

it('A refusal is explained by a trial after it, though the answer to an earlier trial comes in the same packet', async () => {
  const answers: ((failed: readonly string[]) => void)[] = [];
  let tried: readonly Trial[] = [];
  const permissions = new MissingPermissions({
    keyPrefix: 'lock:',
    marker: undefined,
    run: (trials) => {
      tried = trials;
      return new Promise((resolve) => answers.push(resolve));
    },
    refusalOf: (error) => refusalFrom(error as Error, []),
  });
  const probed = permissions.judge({ kind: 'granted' });
  answers[0]!([]);
  const explained = Promise.resolve(REFUSED).then((refusal) => permissions.explain(refusal));
  await probed;
  expect(answers).toHaveLength(2);
  const number = tried.findIndex(([command]) => command === 'set') + 1;
  answers[1]!([`${number} NOPERM ${REFUSED.reason}`]);
  expect(await explained).toMatchObject({ reason: expect.stringContaining('+set') });
});
