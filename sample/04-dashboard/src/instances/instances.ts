import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  NotFoundException,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Config } from '../config.js';
import { CONFIG } from '../config.token.js';
import { LockBoard } from '../live/lock-board.js';
import { LocalMasters } from '../masters/local-masters.js';
import { Instance } from './instance.js';

/** The instances that compete for the jobs. */
@Injectable()
export class Instances implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private instances: readonly Instance[] = [];

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly masters: LocalMasters,
    private readonly board: LockBoard,
  ) {}

  onApplicationBootstrap(): void {
    const { instances, jobs, locks } = this.config;
    const setup = { masters: this.masters.urls, jobs, locks };
    this.instances = instances.map((name) => new Instance(name, setup, (news) => this.board.hear(name, news)));
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.instances.map((instance) => instance.stop()));
  }

  get processes(): readonly Pick<Instance, 'name' | 'pid' | 'state'>[] {
    return this.instances;
  }

  find(name: string): Instance {
    const instance = this.instances.find((each) => each.name === name);
    if (!instance) throw new NotFoundException(`there is no instance ${name}`);
    return instance;
  }
}
