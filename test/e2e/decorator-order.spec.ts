import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  applyDecorators,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Header,
  HttpCode,
  Injectable,
  Param,
  Post,
  SetMetadata,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ApiOperation, ApiResponse, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { WithLock } from 'nestjs-redlock';
import { ADAPTERS } from './support/adapters.js';
import { boot, closeAll, listen } from './support/applications.js';
import { Locks } from './support/locks.js';

let locks: Locks;

beforeEach(() => {
  locks = new Locks();
});
afterEach(closeAll);

@Injectable()
class SignedIn implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['authorization'] === 'me';
  }
}

@Injectable()
class HasRole implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    return this.reflector.get<string | undefined>('role', context.getHandler()) === 'admin';
  }
}

@Controller()
class Orders {
  @WithLock((id: string) => `order:${id}`)
  @UseGuards(SignedIn)
  @HttpCode(202)
  @Header('x-kept', 'yes')
  @Get('above/:id')
  async above(@Param('id') id: string): Promise<unknown> {
    return { id, locked: locks.held };
  }

  @Get('below/:id')
  @Header('x-kept', 'yes')
  @HttpCode(202)
  @UseGuards(SignedIn)
  @WithLock((id: string) => `order:${id}`)
  async below(@Param('id') id: string): Promise<unknown> {
    return { id, locked: locks.held };
  }

  @SetMetadata('role', 'admin')
  @WithLock((id: string) => `order:${id}`)
  @Get('role-above/:id')
  @UseGuards(HasRole)
  async roleAbove(@Param('id') id: string): Promise<unknown> {
    return { id, locked: locks.held };
  }

  @UseGuards(HasRole)
  @Get('role-below/:id')
  @WithLock((id: string) => `order:${id}`)
  @SetMetadata('role', 'admin')
  async roleBelow(@Param('id') id: string): Promise<unknown> {
    return { id, locked: locks.held };
  }

  @ApiOperation({ summary: 'documented above' })
  @ApiResponse({ status: 201, description: 'shipped above' })
  @WithLock('doc')
  @Post('doc-above')
  async docAbove(): Promise<void> {}

  @Post('doc-below')
  @WithLock('doc')
  @ApiResponse({ status: 201, description: 'shipped below' })
  @ApiOperation({ summary: 'documented below' })
  async docBelow(): Promise<void> {}
}

describe.each(ADAPTERS)('on $platform', ({ adapter }) => {
  const start = () => listen({ imports: [locks.module()], controllers: [Orders] }, adapter());

  it.each(['above', 'below'])('refuses an anonymous request with @WithLock %s the guard', async (order) => {
    const { url } = await start();
    const response = await fetch(`${url}/${order}/42`);
    expect(response.status).toBe(403);
    await locks.expectNothingLeft();
  });

  it.each(['above', 'below'])('keeps route, parameters, status and headers with @WithLock %s them', async (order) => {
    const { url } = await start();
    const response = await fetch(`${url}/${order}/42`, { headers: { authorization: 'me' } });
    expect(response.status).toBe(202);
    expect(response.headers.get('x-kept')).toBe('yes');
    expect(await response.json()).toEqual({ id: '42', locked: true });
    await locks.expectNothingLeft();
  });

  it.each(['above', 'below'])('shows guards the metadata that is set %s @WithLock', async (order) => {
    const { url } = await start();
    const response = await fetch(`${url}/role-${order}/42`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ id: '42', locked: true });
  });

  it('keeps the Swagger documentation above and below it', async () => {
    const { app } = await start();
    const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    expect(paths['/doc-above']?.post).toMatchObject({
      summary: 'documented above',
      responses: { 201: { description: 'shipped above' } },
    });
    expect(paths['/doc-below']?.post).toMatchObject({
      summary: 'documented below',
      responses: { 201: { description: 'shipped below' } },
    });
  });
});

describe('The decorated method', () => {
  const tagged = Symbol('tagged');
  const Tag = (): MethodDecorator => (_, __, descriptor) => {
    Object.assign(descriptor.value as object, { [tagged]: 'own' });
  };

  @Injectable()
  class Shop {
    readonly #secret = 'private';
    private readonly name = 'shop';

    @SetMetadata('above', 1)
    @WithLock('shop')
    @SetMetadata('below', 2)
    @Tag()
    async sell(item: string, amount: number): Promise<unknown> {
      return { item, amount, name: this.name, secret: this.#secret, held: locks.held };
    }

    @WithLock((item: string) => `shop:${item}`)
    async keyed(item: string): Promise<string> {
      return item;
    }
  }

  const sell = Reflect.get(Shop.prototype, 'sell') as (...args: unknown[]) => unknown;

  it('keeps its name, length, own properties and metadata', () => {
    expect(sell.name).toBe('sell');
    expect(sell).toHaveLength(2);
    expect(Reflect.get(sell, tagged)).toBe('own');
    expect(Reflect.getMetadata('above', sell)).toBe(1);
    expect(Reflect.getMetadata('below', sell)).toBe(2);
    expect(Reflect.getMetadata('design:paramtypes', Shop.prototype, 'sell')).toEqual([String, Number]);
    expect(Object.keys(Object.getOwnPropertyDescriptors(Shop.prototype))).toEqual(['constructor', 'sell', 'keyed']);
  });

  it('keeps `this`, private fields, arguments and the result', async () => {
    const app = await boot({ imports: [locks.module()], providers: [Shop] });
    await expect(app.get(Shop).sell('pen', 3)).resolves.toEqual({
      item: 'pen',
      amount: 3,
      name: 'shop',
      secret: 'private',
      held: true,
    });
  });

  it('may be named by a symbol, and composes with applyDecorators', async () => {
    const method = Symbol('method');
    const Locked = (key: string) => applyDecorators(SetMetadata('composed', key), WithLock(key) as MethodDecorator);
    @Injectable()
    class Composed {
      @Locked('composed')
      async [method](): Promise<boolean> {
        return locks.held;
      }
    }
    const app = await boot({ imports: [locks.module()], providers: [Composed] });
    await expect(app.get(Composed)[method]()).resolves.toBe(true);
    expect(Reflect.getMetadata('composed', Reflect.get(Composed.prototype, method) as object)).toBe('composed');
  });

  it('takes two locks when it is decorated twice', async () => {
    @Injectable()
    class Twice {
      @WithLock('outer')
      @WithLock('inner')
      async run(): Promise<number> {
        return locks.masters[0]!.size;
      }
    }
    const app = await boot({ imports: [locks.module()], providers: [Twice] });
    await expect(app.get(Twice).run()).resolves.toBe(2);
    await locks.expectNothingLeft();
  });

  it('passes the arguments and `this` to its key function', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class Keys {
      readonly prefix = 'mine';

      @WithLock(function (this: unknown, id: string, count: number) {
        seen.push(this, id, count);
        return id;
      })
      async run(id: string, count: number): Promise<string> {
        return `${id}${count}`;
      }
    }
    const app = await boot({ imports: [locks.module()], providers: [Keys] });
    await expect(app.get(Keys).run('a', 1)).resolves.toBe('a1');
    expect(seen).toEqual([app.get(Keys), 'a', 1]);
  });
});
