/** Name of the queue. */
export const QUEUE = 'invoices';
