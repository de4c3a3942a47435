import { type DynamicModule, Module } from '@nestjs/common';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { DocumentsGateway } from './documents.gateway.js';
import { Renderer } from './renderer.js';

@Module({ providers: [DocumentsGateway] })
export class AppModule {
  static register(locks: RedlockModuleOptions, renderer = new Renderer()): DynamicModule {
    return {
      module: AppModule,
      imports: [RedlockModule.forRoot(locks)],
      providers: [{ provide: Renderer, useValue: renderer }],
    };
  }
}
