import * as server from './one-server.mjs';

export const connect = ([, url], settings) => server.connect([url], settings);
