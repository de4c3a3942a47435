import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { connect as connectFloor } from './floor-ioredis.mjs';

/** An application that locks with ioredis alone. It shows the cost of Nest itself. */
export async function connect(urls) {
  class App {}
  Module({})(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const floor = await connectFloor(urls);
  return {
    ...floor,
    async close() {
      await floor.close();
      await app.close();
    },
  };
}
