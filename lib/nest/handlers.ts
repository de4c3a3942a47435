import 'reflect-metadata';
import { decoratorOf } from './declared-methods.js';

// What a `LockInterceptor` does there: it locks, boot refuses it, or boot warns because it depends.
export type Fate = 'locked' | 'refused' | 'warned';

export interface Method {
  readonly owner: { readonly name: string };
  readonly prototype: object;
  readonly name: string;
  readonly method: object;
  // How Nest uses the class. It may use one in several ways.
  readonly isController: boolean;
  readonly isEnhancer: boolean;
}

export interface HandlerKind {
  // For messages.
  readonly what: string;
  readonly fate: Fate | 'fields';
  readonly is: (method: Method) => boolean;
  // Nest calls these of every class, and an interceptor of the class is not meant for them.
  readonly isOfEveryClass?: boolean;
  // Why it is not locked; default: Nest runs no interceptors.
  readonly because?: string;
  readonly instead?: string;
}

const onMethod =
  (key: string) =>
  ({ method }: Method): boolean =>
    Reflect.getMetadata(key, method) !== undefined;

// Methods with these names, of a class with this metadata.
const onClass =
  (key: string, ...names: readonly string[]) =>
  ({ owner, name }: Method): boolean =>
    names.includes(name) && Reflect.getMetadata(key, owner) !== undefined;

const named =
  (...names: readonly string[]) =>
  ({ name }: Method): boolean =>
    names.includes(name);

function isStreamCall({ method }: Method): boolean {
  const patterns: unknown = Reflect.getMetadata('microservices:pattern', method);
  return (
    Array.isArray(patterns) && patterns.some((pattern) => Reflect.get(Object(pattern), 'streaming') === 'pt_stream')
  );
}

function isSaga({ owner, name }: Method): boolean {
  const sagas: unknown = Reflect.getMetadata('__saga__', owner);
  return Array.isArray(sagas) && sagas.includes(name);
}

// Of the method, or else of its class, as @nestjs/graphql reads it.
function isResolver({ owner, method }: Method): boolean {
  const type: unknown =
    Reflect.getMetadata('graphql:resolver_type', method) ?? Reflect.getMetadata('graphql:resolver_type', owner);
  return type === 'Query' || type === 'Mutation' || type === 'Subscription';
}

const isField = (method: Method): boolean =>
  !isResolver(method) &&
  (onMethod('graphql:resolve_property')(method) || onMethod('graphql:resolve_reference')(method));

const under = (decorators: string, is: HandlerKind['is'], fate: Fate = 'refused'): HandlerKind => ({
  what: `a method under ${decorators}`,
  fate,
  is,
});

// The handlers of Nest and of its packages, by the metadata that their decorators leave. What is not in this list may be called by
// anything, and boot warns of it. A method can be of several kinds.
export const HANDLERS: readonly HandlerKind[] = [
  { what: 'a route', fate: 'locked', is: (method) => method.isController && onMethod('path')(method) },
  {
    what: 'a handler of messages or events',
    fate: 'locked',
    is: (method) => method.isController && onMethod('microservices:handler_type')(method) && !isStreamCall(method),
  },
  {
    ...under('@GrpcStreamCall', (method) => method.isController && isStreamCall(method)),
    because: 'which returns before its stream has ended',
    instead: 'Write @GrpcStreamMethod, and return an Observable',
  },
  {
    what: 'a handler of a gateway',
    fate: 'locked',
    is: (method) =>
      onMethod('websockets:message_mapping')(method) && Reflect.hasMetadata('websockets:is_gateway', method.owner),
  },
  {
    what: 'a hook of a gateway',
    fate: 'refused',
    is: onClass('websockets:is_gateway', 'afterInit', 'handleConnection', 'handleDisconnect'),
  },
  { what: 'a query, a mutation or a subscription', fate: 'locked', is: isResolver },
  {
    what: 'a method under @ResolveField or @ResolveReference',
    fate: 'fields',
    is: isField,
    because: "for which Nest runs interceptors only if GraphQLModule has fieldResolverEnhancers: ['interceptors']",
  },
  { what: 'a scalar', fate: 'refused', is: onClass('graphql:scalar_name', 'serialize', 'parseValue', 'parseLiteral') },
  under('@Cron, @Interval or @Timeout', onMethod('SCHEDULER_TYPE')),
  under('@OnEvent', onMethod('EVENT_LISTENER_METADATA')),
  under('@Process', onMethod('bull:module_queue_process')),
  under('@OnQueueActive, @OnQueueFailed and the like', onMethod('bull:module_on_queue_event')),
  under('@Processor', onClass('bullmq:processor_metadata', 'process')),
  under('@OnWorkerEvent', onMethod('bullmq:worker_events_metadata')),
  under('@OnQueueEvent', onMethod('bullmq:queue_events_metadata')),
  under('@CommandHandler', onClass('__commandHandler__', 'execute')),
  under('@QueryHandler', onClass('__queryHandler__', 'execute')),
  under('@EventsHandler', onClass('__eventsHandler__', 'handle')),
  under('@Saga', isSaga),
  ...['@LockedCron', '@LockedInterval', '@Leader'].map((decorator) =>
    under(decorator, ({ prototype, name }) => decoratorOf(prototype, name) === decorator),
  ),
  {
    what: 'a guard, an interceptor, a pipe, a filter or a middleware',
    fate: 'refused',
    is: (method) => method.isEnhancer && named('canActivate', 'intercept', 'transform', 'catch', 'use')(method),
  },
  {
    what: 'a hook',
    fate: 'refused',
    is: named(
      ...['onModuleInit', 'onApplicationBootstrap', 'onModuleDestroy'],
      ...['beforeApplicationShutdown', 'onApplicationShutdown'],
    ),
    isOfEveryClass: true,
  },
];

// Keys that say nothing beside the list: those of Nest and of the packages in it. Others may mark a handler of another package.
export const KNOWN_METADATA =
  /^(SCHEDULE|EVENT_LISTENER|bull|(graphql|websockets|microservices|swagger|design|self|optional|scope)\W|(host|path|method|message|port|namespace)$|__\w+__$)/;
