import type { ClusterNode } from './cluster-node.js';
import { TcpProxy } from './tcp-proxy.js';

/** The proxies of one client. */
export interface Viewpoint extends AsyncDisposable {
  /** Addresses of the nodes for this client, in the order of `cluster.nodes`. */
  readonly urls: readonly string[];
  /** For the option `natMap` of a client: from the announced addresses to those of this viewpoint. */
  readonly natMap: Readonly<Record<string, { readonly host: string; readonly port: number }>>;
  proxy(node: ClusterNode): TcpProxy;
  /**
   * Holds back what passes between the client and all other nodes. What these nodes are sent arrives when they are reached
   * again, as TCP repeats it: a connection that has lost something in its middle would be none.
   */
  reachOnly(nodes: readonly ClusterNode[]): void;
}

export async function startViewpoint(current: readonly ClusterNode[]): Promise<Viewpoint> {
  const nodes = [...current];
  const proxies = await Promise.all(nodes.map(({ port }) => TcpProxy.to(port)));
  const proxy = (node: ClusterNode): TcpProxy => {
    const found = proxies[nodes.indexOf(node)];
    if (!found) throw new Error('The node joined after the viewpoint was made');
    return found;
  };
  return {
    urls: proxies.map(({ url }) => url),
    natMap: Object.fromEntries(
      nodes.map((node) => [`127.0.0.1:${node.port}`, { host: '127.0.0.1', port: proxy(node).port }]),
    ),
    proxy,
    reachOnly: (reached) => {
      for (const node of nodes) {
        const { requests, replies } = proxy(node);
        for (const wire of [requests, replies]) {
          if (reached.includes(node)) wire.pass();
          else wire.hold();
        }
      }
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(proxies.map((one) => one.close()));
    },
  };
}
