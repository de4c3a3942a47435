import { type DynamicModule, Module } from '@nestjs/common';
import { AdminGuard } from './admin.guard.js';
import { LoginController } from './login.controller.js';
import { Session } from './session.js';

@Module({ controllers: [LoginController], providers: [AdminGuard], exports: [AdminGuard, Session] })
export class AdminModule {
  static register(password: string): DynamicModule {
    return { module: AdminModule, providers: [{ provide: Session, useValue: new Session(password) }] };
  }
}
