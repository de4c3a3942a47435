import { UseFilters } from '@nestjs/common';
import { MessageBody, SubscribeMessage, WebSocketGateway, type WsResponse } from '@nestjs/websockets';
import { WithLock } from 'nestjs-redlock';
import { LockedFilter } from './locked.filter.js';
import { Renderer } from './renderer.js';

export interface Publication {
  document: string;
}

@WebSocketGateway()
@UseFilters(LockedFilter)
export class DocumentsGateway {
  constructor(private readonly renderer: Renderer) {}

  /**
   * If two clients publish one document at the same moment, on any instances, one succeeds and the other gets an error.
   *
   * With parameter decorators, the message is the first argument, and the key function receives it. Without them, it
   * would receive the socket.
   */
  @SubscribeMessage('publish')
  @WithLock(({ document }: Publication) => `document:${document}`, { ttl: '2s', wait: 0 })
  async publish(@MessageBody() { document }: Publication): Promise<WsResponse<Publication>> {
    await this.renderer.render(document);
    return { event: 'published', data: { document } };
  }
}
