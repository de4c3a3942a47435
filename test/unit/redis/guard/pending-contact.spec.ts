import { beforeEach, describe, expect, it } from '@jest/globals';
import { PendingContact } from '../../../../lib/redis/guard/pending-contact.js';

let contact: PendingContact;
let reconnects: number;

beforeEach(() => {
  reconnects = 0;
  contact = new PendingContact({ reconnect: () => reconnects++ });
});

describe('PendingContact', () => {
  it('replaces the connection once the oldest request is overdue, and then counts anew', () => {
    contact.begin(0);
    contact.begin(900);
    contact.reconnectAfter(1_000, 999);
    expect(reconnects).toBe(0);
    contact.reconnectAfter(1_000, 1_000);
    contact.reconnectAfter(1_000, 1_999);
    expect(reconnects).toBe(1);
    contact.reconnectAfter(1_000, 2_000);
    expect(reconnects).toBe(2);
  });

  it('keeps the connection while no request is under way', () => {
    contact.reconnectAfter(1_000, 5_000);
    contact.begin(5_000);
    expect(contact.isUnderWay).toBe(true);
    contact.end();
    expect(contact.isUnderWay).toBe(false);
    contact.reconnectAfter(1_000, 9_000);
    expect(reconnects).toBe(0);
  });
});
