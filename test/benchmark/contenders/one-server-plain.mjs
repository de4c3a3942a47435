import * as server from './one-server.mjs';

export const connect = (urls, settings) => server.connect(urls, { ...settings, restartGuard: false });
