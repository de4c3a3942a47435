import * as tagged from './cluster-one-tag.mjs';

export const connect = (urls, settings) => tagged.connect(urls, { ...settings, restartGuard: false });
