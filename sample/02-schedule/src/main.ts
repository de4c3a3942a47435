import { start } from './start.js';

const { REDIS_URLS, STORE, INSTANCE = String(process.pid), PORT = '3000', LOCKS } = process.env;
if (!REDIS_URLS || !STORE) throw new Error('set REDIS_URLS to the masters, and STORE to a folder of all instances');
const locks = { masters: REDIS_URLS.split(','), enabled: LOCKS !== 'off' };
await start({ instance: INSTANCE, port: Number(PORT), store: STORE, locks });
