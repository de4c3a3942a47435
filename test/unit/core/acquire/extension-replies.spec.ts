import { describe, expect, it } from '@jest/globals';
import { ExtensionReplies } from '../../../../lib/core/acquire/extension-replies.js';
import type { MasterReport } from '../../../../lib/core/errors.js';
import { GRANTED, type MasterReply, TIMED_OUT } from '../../../../lib/core/master.interface.js';

const DOWN: MasterReply = { kind: 'unreachable', reason: 'gone', sent: false };
const FULL: MasterReply = { kind: 'refused', code: 'OOM', reason: 'no memory' };

function round(isOpen: boolean, ...answers: (MasterReply | undefined)[]) {
  return { isOpen, report: answers.map((answer, index): MasterReport => ({ master: `m${index + 1}`, answer })) };
}

describe('ExtensionReplies', () => {
  it('has none before an extension', () => {
    expect(new ExtensionReplies().last).toEqual([]);
  });

  it('keeps the reply to an earlier extension of a master that was not waited for', () => {
    const replies = new ExtensionReplies();
    replies.begin(round(false, DOWN, DOWN, GRANTED));
    replies.begin(round(false, TIMED_OUT, DOWN, undefined));
    expect(replies.last).toEqual(round(false, TIMED_OUT, DOWN, GRANTED).report);
  });

  it('counts a master as one without an answer in time if it has not answered when the lock ends', () => {
    const replies = new ExtensionReplies();
    replies.begin(round(false, GRANTED, DOWN, DOWN));
    replies.begin(round(true, undefined, undefined, DOWN));
    expect(replies.last).toEqual(round(false, TIMED_OUT, TIMED_OUT, DOWN).report);
  });

  it('keeps the refusal of an earlier extension, however late the one under way was sent', () => {
    const replies = new ExtensionReplies();
    replies.begin(round(false, GRANTED, FULL, FULL));
    replies.begin(round(true, undefined, undefined, GRANTED));
    expect(replies.last).toEqual(round(false, TIMED_OUT, FULL, GRANTED).report);
  });
});
