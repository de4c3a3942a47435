// Compile-only: `npm run typecheck` fails where something compiles that must not, or does not that must.
import { of } from 'rxjs';
import { applyDecorators, SetMetadata } from '@nestjs/common';
import { type LockedMethodOptions, WithLock } from 'nestjs-redlock';

interface User {
  readonly id: string;
}

export class Uses {
  @WithLock(['a', 'b'] as const, '250ms')
  async constants(): Promise<void> {}

  @WithLock((orderId: string) => `order:${orderId}`, 10_000)
  async fewerArguments(orderId: string, by: User): Promise<User> {
    return by;
  }

  @WithLock((id?: string) => id ?? 'all')
  async optional(id?: string): Promise<void> {}

  @WithLock((id: string, _?: number) => id)
  async optionalBeyond(id: string): Promise<void> {}

  @WithLock((...ids: string[]) => ids)
  async rest(...ids: string[]): Promise<void> {}

  @WithLock((first: string) => first)
  async restBeyond(first: string, ...others: number[]): Promise<void> {}

  @WithLock(({ id }: { id: string }) => id)
  async structural(user: User): Promise<void> {}

  @WithLock((id: unknown) => String(id))
  async generic<T>(id: T): Promise<T> {
    return id;
  }

  async overloaded(id: number): Promise<number>;
  async overloaded(id: string): Promise<string>;
  @WithLock((id: string | number) => String(id))
  async overloaded(id: string | number): Promise<string | number> {
    return id;
  }

  @WithLock('like')
  like(): PromiseLike<number> {
    return Promise.resolve(1);
  }
}

export class Composed {
  @applyDecorators(SetMetadata('id', 1), WithLock((id: string) => id, '5s'))
  async run(id: string): Promise<string> {
    return id;
  }
}

export class Store<T extends User> {
  readonly saved: T[] = [];

  // The compiler cannot compare a type of its own with the parameter.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  @WithLock((user: any) => (user as User).id)
  async save(user: T): Promise<void> {
    this.saved.push(user);
  }
}

declare const SOMEHOW: LockedMethodOptions;

export class Skipping {
  @WithLock('a', SOMEHOW)
  async perhaps(): Promise<number | undefined> {
    return 1;
  }

  @WithLock('a', { onLocked: 'skip' })
  async nothing(): Promise<void> {}

  @WithLock('a', { onLocked: 'skip' })
  async maybe(): Promise<number | undefined> {
    return 1;
  }

  // @ts-expect-error the caller would get undefined instead of a number
  @WithLock('a', { onLocked: 'skip' })
  async always(): Promise<number> {
    return 1;
  }

  // @ts-expect-error options that may skip
  @WithLock('a', SOMEHOW)
  async somehow(): Promise<number> {
    return 1;
  }
}

export class Misuses {
  // @ts-expect-error the parameter has no type
  @WithLock((id) => id)
  async unannotated(id: string): Promise<void> {}

  // @ts-expect-error returns an Observable
  @WithLock('a')
  observable() {
    return of(1);
  }

  // @ts-expect-error an async generator returns no promise
  @WithLock('a')
  async *stream() {
    yield 1;
  }

  // @ts-expect-error not always a promise
  @WithLock('a')
  sometimes(): Promise<number> | number {
    return 1;
  }

  // @ts-expect-error a property is no method
  @WithLock('a')
  property = async () => Promise.resolve();

  // @ts-expect-error a getter is no method
  @WithLock('a')
  get value(): Promise<void> {
    return Promise.resolve();
  }

  // @ts-expect-error the key function takes another type
  @WithLock((id: string) => id)
  async otherType(id: number): Promise<void> {}

  // @ts-expect-error the key function takes more than the method
  @WithLock((id: string, to: string) => [id, to])
  async tooFew(id: string): Promise<void> {}

  // @ts-expect-error the argument may be missing
  @WithLock((id: string) => id)
  async maybeMissing(id?: string): Promise<void> {}

  // @ts-expect-error the list may be empty
  @WithLock((first: string) => first)
  async maybeEmpty(...ids: string[]): Promise<void> {}

  // @ts-expect-error a narrower type than the method takes
  @WithLock((id: 'a' | 'b') => id)
  async narrower(id: string): Promise<void> {}

  // @ts-expect-error the key function gives a number
  @WithLock((id: number) => id)
  async numberFromKey(id: number): Promise<void> {}
}
