import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { OnQueueEvent, OnWorkerEvent, Processor } from '@nestjs/bullmq';
import { Controller, Get, Injectable, type ModuleMetadata, SetMetadata, UseGuards } from '@nestjs/common';
import {
  CommandBus,
  CommandHandler,
  CqrsModule,
  EventBus,
  EventsHandler,
  QueryBus,
  QueryHandler,
  Saga,
} from '@nestjs/cqrs';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Field, GraphQLModule, ObjectType, Query, ResolveField, Resolver, Scalar } from '@nestjs/graphql';
import { GrpcStreamCall, MessagePattern } from '@nestjs/microservices';
import { Interval, ScheduleModule } from '@nestjs/schedule';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { Leader, RedlockLeaderModule } from 'nestjs-redlock/leader';
import { LockedCron, LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { of } from 'rxjs';
import { type Listening, listen } from './applications.js';
import { startGateway, startMicroservice } from './messages.js';

/** A handler, whose method calls `ran`. */
export interface HandlerExample {
  readonly make: (decorator: MethodDecorator, ran: () => void) => ModuleMetadata;
  /** Boots it, and has the method called by what calls it in an application. */
  readonly call?: (metadata: ModuleMetadata) => Promise<unknown>;
}

/** A class whose method has these decorators, the first of which is the upper one, and gives this. */
function classOf(
  kind: ClassDecorator,
  name: string,
  decorators: readonly MethodDecorator[],
  ran: () => void,
  given?: unknown,
) {
  class Example {
    [name](..._: unknown[]): unknown {
      ran();
      return given;
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Example.prototype, name) as PropertyDescriptor;
  Reflect.defineMetadata('design:paramtypes', [], Example.prototype, name);
  for (const decorator of decorators.toReversed()) decorator(Example.prototype, name, descriptor);
  Object.defineProperty(Example.prototype, name, descriptor);
  kind(Example);
  return Example;
}

const provided = (
  kind: ClassDecorator,
  name: string,
  handler: readonly MethodDecorator[] = [],
  imports: ModuleMetadata['imports'] = [],
  given?: unknown,
) => ({
  make: (decorator: MethodDecorator, ran: () => void) => ({
    providers: [classOf(kind, name, [decorator, ...handler], ran, given)],
    imports,
  }),
});

const controlled = (handler: MethodDecorator, given?: unknown) => ({
  make: (decorator: MethodDecorator, ran: () => void) => ({
    controllers: [classOf(Controller(), 'run', [handler, decorator], ran, given)],
  }),
});

const requesting =
  (path: string) =>
  async (metadata: ModuleMetadata): Promise<unknown> => {
    const { url } = await listen(metadata);
    const response = await fetch(`${url}/${path}`);
    return response.text();
  };

const acting = (act: (listening: Listening) => unknown) => async (metadata: ModuleMetadata) =>
  act(await listen(metadata));

const connecting = async (metadata: ModuleMetadata): Promise<unknown> => {
  const { client } = await startGateway(metadata);
  client.send('run', 1);
  return client.receive().finally(() => client.close());
};

const sending = async (metadata: ModuleMetadata): Promise<unknown> => {
  const { client } = await startMicroservice(metadata);
  try {
    return await new Promise((resolve, reject) => client.send('run', 1).subscribe({ next: resolve, error: reject }));
  } finally {
    await client.close();
  }
};

@ObjectType('Account')
class Account {
  @Field(() => String)
  id!: string;
}

export const graphql = (options: Partial<ApolloDriverConfig> = {}) =>
  GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, ...options });

export const resolving =
  (query: string) =>
  async (metadata: ModuleMetadata): Promise<unknown> => {
    const { url } = await listen(metadata);
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
    return response.json();
  };

export function fieldOf(decorator: MethodDecorator, ran: () => void) {
  @Resolver(() => Account)
  class Accounts {
    @Query(() => Account)
    account(): Account {
      return Object.assign(new Account(), { id: '7' });
    }

    @ResolveField(() => Number)
    @decorator
    balance(): number {
      ran();
      return 5;
    }
  }
  return Accounts;
}

class Ship {
  readonly order = 42;
}

const cqrs = (kind: ClassDecorator, method: 'execute' | 'handle', call: (listening: Listening) => unknown) => ({
  ...provided(kind, method, [], [CqrsModule.forRoot()], Promise.resolve()),
  call: acting(call),
});

/** On the method `run` of a provider. */
const under = (
  handler: MethodDecorator,
  imports: ModuleMetadata['imports'] = [],
  act?: (listening: Listening) => unknown,
) => ({
  ...provided(Injectable(), 'run', [handler], imports),
  ...(act && { call: acting(act) }),
});

const REPLY = { event: 'done', data: 1 };
const JOBS = [ScheduleModule.forRoot(), RedlockScheduleModule];

/** By `what` in the table of handlers. Without a call if it needs another server than the test has. */
export const EXAMPLES: Record<string, HandlerExample> = {
  'a route': { ...controlled(Get('run'), 'done'), call: requesting('run') },
  'a handler of messages or events': { ...controlled(MessagePattern('run'), 'done'), call: sending },
  'a method under @GrpcStreamCall': controlled(GrpcStreamCall('Service', 'Run')),
  'a handler of a gateway': {
    ...provided(WebSocketGateway(), 'run', [SubscribeMessage('run')], [], REPLY),
    call: connecting,
  },
  'a hook of a gateway': {
    make: (decorator, ran) => ({
      providers: [
        classOf(WebSocketGateway(), 'handleConnection', [decorator], ran),
        classOf(WebSocketGateway(), 'run', [SubscribeMessage('run')], () => undefined, REPLY),
      ],
    }),
    call: connecting,
  },
  'a query, a mutation or a subscription': {
    ...provided(Resolver(), 'run', [Query(() => String)], [graphql()], 'done'),
    call: resolving('{ run }'),
  },
  'a method under @ResolveField or @ResolveReference': {
    make: (decorator, ran) => ({ providers: [fieldOf(decorator, ran)], imports: [graphql()] }),
    call: resolving('{ account { balance } }'),
  },
  'a scalar': provided(Scalar('Money'), 'serialize'),
  'a method under @Cron, @Interval or @Timeout': under(Interval(5), [ScheduleModule.forRoot()], () => undefined),
  'a method under @OnEvent': under(OnEvent('run'), [EventEmitterModule.forRoot()], ({ app }) =>
    app.get(EventEmitter2).emit('run'),
  ),
  'a method under @Process': under(SetMetadata('bull:module_queue_process', {})),
  'a method under @OnQueueActive, @OnQueueFailed and the like': under(SetMetadata('bull:module_on_queue_event', {})),
  'a method under @Processor': provided(Processor('mails'), 'process'),
  'a method under @OnWorkerEvent': under(OnWorkerEvent('active')),
  'a method under @OnQueueEvent': under(OnQueueEvent('active')),
  'a method under @CommandHandler': cqrs(CommandHandler(Ship), 'execute', ({ app }) =>
    app.get(CommandBus).execute(new Ship() as never),
  ),
  'a method under @QueryHandler': cqrs(QueryHandler(Ship), 'execute', ({ app }) =>
    app.get(QueryBus).execute(new Ship() as never),
  ),
  'a method under @EventsHandler': cqrs(EventsHandler(Ship), 'handle', ({ app }) =>
    app.get(EventBus).publish(new Ship()),
  ),
  'a method under @Saga': {
    ...provided(Injectable(), 'run', [Saga()], [CqrsModule.forRoot()], of()),
    call: acting(() => undefined),
  },
  'a method under @LockedCron': under(LockedCron('0 3 * * *', { name: 'x' }), JOBS),
  'a method under @LockedInterval': under(LockedInterval('1h', { name: 'x' }), JOBS),
  'a method under @Leader': under(Leader('x'), [RedlockLeaderModule]),
  'a guard, an interceptor, a pipe, a filter or a middleware': {
    make: (decorator, ran) => {
      const Example = classOf(Injectable(), 'canActivate', [decorator], ran, true);
      @Controller()
      @UseGuards(Example)
      class Guarded {
        @Get('run')
        run(): void {}
      }
      return { controllers: [Guarded] };
    },
    call: requesting('run'),
  },
  'a hook': { ...provided(Injectable(), 'onModuleInit'), call: acting(() => undefined) },
};
