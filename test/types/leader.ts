// Compile-only: `npm run typecheck` fails where something compiles that must not, or does not that must.
import { Injectable, Module } from '@nestjs/common';
import { RedlockModule } from 'nestjs-redlock';
import { Elections, Leader, type Leadership, type LeaderReport, RedlockLeaderModule } from 'nestjs-redlock/leader';

@Injectable()
export class Relay {
  constructor(private readonly elections: Elections) {}

  @Leader('outbox', { ttl: '10s', data: { port: 80 }, service: 'billing' })
  async relay({ term, signal, lock, ended, election }: Leadership): Promise<string> {
    signal.throwIfAborted();
    lock.assertHeld();
    await ended;
    return `${election} ${term + 1}`;
  }

  @Leader('cleaner')
  async clean(): Promise<void> {
    const leader: LeaderReport<{ port: number }> | undefined = await this.elections.leader('outbox');
    const term: number | undefined = leader?.term;
    const port: number | undefined = leader?.data?.port;
    const remove: () => void = this.elections.observe({ elected: (name, at) => this.note(`${name} ${at + 1}`) });
    if (this.elections.isLeader('outbox') && term === port) remove();
  }

  private note(line: string): void {
    this.elections.isLeader(line);
  }

  // @ts-expect-error an election has a name
  @Leader()
  async unnamed(): Promise<void> {}

  // @ts-expect-error an election has no permits
  @Leader('x', { permits: 2 })
  async permitted(): Promise<void> {}

  // @ts-expect-error a leader returns a promise
  @Leader('x')
  synchronous(): void {}

  // @ts-expect-error a leader receives a leadership only
  @Leader('x')
  async demanding(leadership: Leadership, more: string): Promise<string> {
    return `${leadership.term} ${more}`;
  }
}

@Module({ imports: [RedlockModule.forRoot({ masters: 'memory' }), RedlockLeaderModule], providers: [Relay] })
export class LeaderModule {}
