import * as cluster from './cluster.mjs';

export const connect = (urls, settings) => cluster.connect(urls, { ...settings, restartGuard: false });
