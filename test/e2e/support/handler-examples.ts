import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { OnQueueEvent, OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import {
  type CanActivate,
  Controller,
  Get,
  Injectable,
  type ModuleMetadata,
  type OnModuleInit,
  SetMetadata,
  UseGuards,
} from '@nestjs/common';
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
import { type Observable, of } from 'rxjs';
import { type Listening, listen } from './applications.js';
import { startGateway, startMicroservice } from './messages.js';

/** A handler, whose method calls `ran`. */
export interface HandlerExample {
  readonly make: (decorator: MethodDecorator, ran: () => void) => ModuleMetadata;
  /** Boots it, and has the method called by what calls it in an application. */
  readonly call?: (metadata: ModuleMetadata) => Promise<unknown>;
}

const provider = (
  example: NonNullable<ModuleMetadata['providers']>[number],
  ...imports: ModuleMetadata['imports'] & {}
) => ({
  providers: [example],
  imports,
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
  make: (decorator: MethodDecorator, ran: () => void) => {
    class Handler {
      async execute(): Promise<void> {
        ran();
      }

      async handle(): Promise<void> {
        ran();
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Handler.prototype, method) as PropertyDescriptor;
    decorator(Handler.prototype, method, descriptor);
    kind(Handler);
    return provider(Handler, CqrsModule.forRoot());
  },
  call: acting(call),
});

/** On the method `run` of a provider. */
const under = (
  handler: MethodDecorator,
  imports: ModuleMetadata['imports'] = [],
  act?: (listening: Listening) => unknown,
) => ({
  make: (decorator: MethodDecorator, ran: () => void) => {
    @Injectable()
    class Example {
      @decorator
      @handler
      async run(): Promise<void> {
        ran();
      }
    }
    return provider(Example, ...imports);
  },
  ...(act && { call: acting(act) }),
});

/** By `what` in the table of handlers. Without a call if it needs another server than the test has. */
export const EXAMPLES: Record<string, HandlerExample> = {
  'a route': {
    make: (decorator, ran) => {
      @Controller()
      class Example {
        @Get('run')
        @decorator
        run(): string {
          ran();
          return 'done';
        }
      }
      return { controllers: [Example] };
    },
    call: requesting('run'),
  },
  'a handler of messages or events': {
    make: (decorator, ran) => {
      @Controller()
      class Example {
        @MessagePattern('run')
        @decorator
        run(): string {
          ran();
          return 'done';
        }
      }
      return { controllers: [Example] };
    },
    call: sending,
  },
  'a method under @GrpcStreamCall': {
    make: (decorator, ran) => {
      @Controller()
      class Example {
        @GrpcStreamCall('Service', 'Run')
        @decorator
        run(): void {
          ran();
        }
      }
      return { controllers: [Example] };
    },
  },
  'a handler of a gateway': {
    make: (decorator, ran) => {
      @WebSocketGateway()
      class Example {
        @SubscribeMessage('run')
        @decorator
        run(): object {
          ran();
          return { event: 'done', data: 1 };
        }
      }
      return provider(Example);
    },
    call: connecting,
  },
  'a hook of a gateway': {
    make: (decorator, ran) => {
      @WebSocketGateway()
      class Example {
        @decorator
        handleConnection(): void {
          ran();
        }

        @SubscribeMessage('run')
        run(): object {
          return { event: 'done', data: 1 };
        }
      }
      return provider(Example);
    },
    call: connecting,
  },
  'a query, a mutation or a subscription': {
    make: (decorator, ran) => {
      @Resolver()
      class Example {
        @Query(() => String)
        @decorator
        run(): string {
          ran();
          return 'done';
        }
      }
      return provider(Example, graphql());
    },
    call: resolving('{ run }'),
  },
  'a method under @ResolveField or @ResolveReference': {
    make: (decorator, ran) => provider(fieldOf(decorator, ran), graphql()),
    call: resolving('{ account { balance } }'),
  },
  'a scalar': {
    make: (decorator, ran) => {
      @Scalar('Money')
      class Example {
        @decorator
        serialize(value: unknown): unknown {
          ran();
          return value;
        }
      }
      return provider(Example);
    },
  },
  'a method under @Cron, @Interval or @Timeout': under(Interval(5), [ScheduleModule.forRoot()], () => undefined),
  'a method under @OnEvent': under(OnEvent('run'), [EventEmitterModule.forRoot()], ({ app }) =>
    app.get(EventEmitter2).emit('run'),
  ),
  'a method under @Process': under(SetMetadata('bull:module_queue_process', {})),
  'a method under @OnQueueActive, @OnQueueFailed and the like': under(SetMetadata('bull:module_on_queue_event', {})),
  'a method under @Processor': {
    make: (decorator, ran) => {
      @Processor('mails')
      class Example extends WorkerHost {
        @decorator
        async process(): Promise<void> {
          ran();
        }
      }
      return provider(Example);
    },
  },
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
    make: (decorator, ran) => {
      @Injectable()
      class Example {
        @Saga()
        @decorator
        run(_: Observable<unknown>): Observable<never> {
          ran();
          return of();
        }
      }
      return provider(Example, CqrsModule.forRoot());
    },
    call: acting(() => undefined),
  },
  'a method under @LockedCron': under(LockedCron('0 3 * * *', { name: 'x' }), [
    ScheduleModule.forRoot(),
    RedlockScheduleModule,
  ]),
  'a method under @LockedInterval': under(LockedInterval('1h', { name: 'x' }), [
    ScheduleModule.forRoot(),
    RedlockScheduleModule,
  ]),
  'a method under @Leader': under(Leader('x'), [RedlockLeaderModule]),
  'a guard, an interceptor, a pipe, a filter or a middleware': {
    make: (decorator, ran) => {
      @Injectable()
      class Example implements CanActivate {
        @decorator
        canActivate(): boolean {
          ran();
          return true;
        }
      }
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
  'a hook': {
    make: (decorator, ran) => {
      @Injectable()
      class Example implements OnModuleInit {
        @decorator
        onModuleInit(): void {
          ran();
        }
      }
      return provider(Example);
    },
    call: acting(() => undefined),
  },
};
