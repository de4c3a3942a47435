import { describe, expect, it } from '@jest/globals';
import type { CanActivate } from '@nestjs/common';
import { RedlockDashboardModule, type RedlockDashboardOptions } from 'nestjs-redlock/dashboard';
import { resolveSettings } from '../../../lib/dashboard/options.js';

class AdminGuard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

const forRoot = (options: object): unknown => RedlockDashboardModule.forRoot(options as RedlockDashboardOptions);

describe('RedlockDashboardModule', () => {
  it.each([[{}], [{ guards: undefined }], [{ guards: [] }], [{ guards: true }], [{ guards: 'AdminGuard' }]])(
    'refuses %j, because it has no guard, and names what to write',
    (options) => {
      expect(() => forRoot(options)).toThrow(
        /^guards must be a list of at least one guard, such as \[AdminGuard\], .* write guards: 'none' if a global guard or a proxy protects it, got/,
      );
    },
  );

  it('accepts classes and instances of guards, and an explicit none', () => {
    for (const guards of [[AdminGuard], [new AdminGuard()], [AdminGuard, new AdminGuard()], 'none']) {
      expect(forRoot({ guards })).toMatchObject({ module: RedlockDashboardModule });
    }
  });

  it.each([
    [{ guards: [{}] }, 'guards[0] must be the class or an instance of a guard of Nest, got an object (Object)'],
    [{ guards: [AdminGuard, 'admin'] }, 'guards[1] must be the class or an instance of a guard of Nest, got "admin"'],
    [{ guards: 'none', path: '' }, 'path must be a path without parameters, such as \'admin/locks\', got ""'],
    [{ guards: 'none', path: ':id' }, 'path must be a path without parameters, such as \'admin/locks\', got ":id"'],
    [{ guards: 'none', actions: 'yes' }, 'actions must be true or false, got "yes"'],
    [{ guards: 'none', actor: 'anna' }, 'actor must be a function that names the user of a request, got "anna"'],
    ...[
      ...['admin.example.com', 'https://admin.example.com/locks', 'ftp://admin.example.com', 'https://*.example.com'],
      ...['https://anna@admin.example.com', '*', '', 5, null],
    ].map((origin): [object, string] => [
      { guards: 'none', origins: ['https://ok.example', origin] },
      "origins[1] must be an absolute origin without a path, such as 'https://admin.example.com', got",
    ]),
    [{ guards: 'none', origins: 'https://a.example' }, "origins must be a list of origins, such as ['https://admin"],
    [{ guards: 'none', action: true }, 'options may hold known options only (did you mean actions?), got "action"'],
  ])('refuses %j', (options, message) => {
    expect(() => forRoot(options)).toThrow(message);
  });

  it('accepts a path with and without slashes around it', () => {
    for (const path of ['admin/locks', '/admin/locks', '/admin/locks/']) {
      expect(() => forRoot({ guards: 'none', path })).not.toThrow();
    }
  });

  it('accepts origins with a port, in upper case and with a slash at the end', () => {
    const origins = [
      'https://Admin.Example.com/',
      'http://localhost:3000',
      'http://[::1]:8080',
      'https://a.example:443',
    ];
    expect(() => forRoot({ guards: 'none', origins })).not.toThrow();
    expect(resolveSettings({ origins }).origins).toEqual([
      ...['https://admin.example.com', 'http://localhost:3000', 'http://[::1]:8080', 'https://a.example'],
    ]);
  });

  it('refuses asynchronous options without a guard or a factory', () => {
    const forRootAsync = (options: object): unknown => RedlockDashboardModule.forRootAsync(options as never);
    expect(() => forRootAsync({ useFactory: () => ({}) })).toThrow('guards must be a list of at least one guard');
    expect(() => forRootAsync({ guards: 'none' })).toThrow('useFactory must be a function that returns the settings');
    expect(() => forRootAsync({ guards: 'none', useFactory: () => ({}), actions: true })).toThrow('known options only');
  });
});
