import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { GraphQLModule } from '@nestjs/graphql';
import { LockExceptionFilter, RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { CartsResolver } from './carts.resolver.js';
import { Payments } from './payments.js';

@Module({
  imports: [
    GraphQLModule.forRoot<ApolloDriverConfig>({
      driver: ApolloDriver,
      autoSchemaFile: true,
      // Otherwise Apollo adds the stack to `extensions`, unless NODE_ENV is production or test.
      includeStacktraceInErrorResponses: false,
    }),
  ],
  providers: [CartsResolver, { provide: APP_FILTER, useClass: LockExceptionFilter }],
})
export class AppModule {
  static register(locks: RedlockModuleOptions, payments = new Payments()): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks)],
      providers: [{ provide: Payments, useValue: payments }],
    };
  }
}
