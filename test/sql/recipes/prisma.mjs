import { PrismaPg } from '@prisma/adapter-pg';
import { fence } from 'nestjs-redlock/sql';
import prisma from './prisma-client/index.js';

export function open(url) {
  const client = new prisma.PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
  return {
    dialect: 'postgres',
    execute: (sql) => client.$executeRawUnsafe(sql),
    count: async () => (await client.stock.findFirstOrThrow()).count,
    sell: (lock) =>
      client.$transaction(async (tx) => {
        await fence(lock, (sql, params) => tx.$queryRawUnsafe(sql, ...params));
        await tx.stock.updateMany({ data: { count: { decrement: 1 } } });
      }),
    outside: (lock) => fence(lock, (sql, params) => client.$queryRawUnsafe(sql, ...params)),
    close: () => client.$disconnect(),
  };
}
