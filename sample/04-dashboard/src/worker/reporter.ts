import type { AcquisitionObserver, LockObserver } from 'nestjs-redlock';
import { publish } from './news.js';

/** Reports the locks of this instance. Every job locks one resource. */
export const reporter: LockObserver = {
  acquiring([resource = '']): AcquisitionObserver {
    publish({ kind: 'waiting', resource });
    return {
      granted: ({ waited }) => publish({ kind: 'granted', resource, waited }),
      failed: () => publish({ kind: 'failed', resource }),
      ended: (held, loss) => publish({ kind: 'ended', resource, held, lost: loss?.cause }),
    };
  },
};
