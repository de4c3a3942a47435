import { afterEach, describe, expect, it } from '@jest/globals';
import { type INestApplication, Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockService } from 'nestjs-redlock';
import { AppModule } from '../src/app.module.js';

const apps: INestApplication[] = [];
afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));

async function start() {
  Logger.overrideLogger(false);
  const app = await NestFactory.create(AppModule.register({ masters: 'memory', drainTimeout: 0 }, 'open sesame'));
  apps.push(app);
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const get = (path: string, cookie = '') =>
    fetch(url + path, { headers: { cookie, 'x-redlock-dashboard': 'page' }, redirect: 'manual' });
  const signIn = (password: string) =>
    fetch(`${url}/login`, { method: 'POST', body: new URLSearchParams({ password }), redirect: 'manual' });
  return { locks: app.get(LockService), get, signIn };
}

describe('The dashboard of the application', () => {
  it('is closed to those who have not signed in', async () => {
    const { get, signIn } = await start();
    await expect((await get('/login')).text()).resolves.toContain('type="password"');
    for (const path of ['/admin/locks', '/admin/locks/page/index.html', '/admin/locks/api/state']) {
      expect([path, (await get(path)).status, (await get(path, 'admin=x')).status]).toEqual([path, 401, 401]);
    }
    const refused = await signIn('please');
    expect([refused.status, refused.headers.get('set-cookie')]).toEqual([401, null]);
  });

  it('shows the locks and the jobs to those who have', async () => {
    const { locks, get, signIn } = await start();
    await using _lock = await locks.acquire('order:7');
    const welcome = await signIn('open sesame');
    expect([welcome.status, welcome.headers.get('location')]).toEqual([303, '/admin/locks']);
    const [cookie] = welcome.headers.get('set-cookie')!.split(';');
    expect((await get('/admin/locks/page/index.html', cookie)).status).toBe(200);
    await expect((await get('/admin/locks/api/state', cookie)).json()).resolves.toMatchObject({
      actions: true,
      services: [{ canVote: true, held: { locks: [{ resources: ['order:7'] }] } }],
      jobs: [{ name: 'report' }],
    });
  });
});
