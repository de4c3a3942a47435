import type { AcquisitionObserver, LockObserver } from 'nestjs-redlock';
import { tell } from './news.js';

/** Reports the locks of this instance. Every job locks one resource. */
export const reporter: LockObserver = {
  acquiring([resource = '']): AcquisitionObserver {
    tell({ kind: 'waiting', resource });
    return {
      granted: ({ waited }) => tell({ kind: 'granted', resource, waited }),
      failed: () => tell({ kind: 'failed', resource }),
      ended: (held, loss) => tell({ kind: 'ended', resource, held, lost: loss?.cause }),
    };
  },
};
