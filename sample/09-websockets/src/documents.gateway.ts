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
   * Two clients that publish one document at the same moment, on whichever instances: one does, and the other one is told.
   *
   * With parameter decorators the message comes first, and the key function gets it; without them it would be the socket.
   */
  @SubscribeMessage('publish')
  @WithLock(({ document }: Publication) => `document:${document}`, '5s', { wait: 0 })
  async publish(@MessageBody() { document }: Publication): Promise<WsResponse<Publication>> {
    await this.renderer.render(document);
    return { event: 'published', data: { document } };
  }
}
