import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A wire between a client and a server of this machine, which can be cut, held or left half open. */
export interface TcpProxy {
  readonly port: number;
  /** Breaks every connection at once, on both sides. */
  cut(): void;
  /** Lets nothing through any more and tells nobody: connections stay open, new ones too. */
  freeze(): void;
  /** Lets everything through again that comes from now on, over new connections. */
  thaw(): void;
  /** Once the client has sent these bytes, the server gets them and its answer is lost; all connections break `afterMs` later. */
  loseAnswerTo(bytes: string, afterMs: number): void;
  /** Once the client has sent these bytes, the server gets them, and neither hears of the other again, not even that it has hung up. */
  goDeafAfter(bytes: string): void;
  close(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

/** Listens on a free port and connects each client to the server's. */
export async function startTcpProxy(serverPort: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  let frozen = false;
  let losing: { bytes: string; afterMs: number | null } | null = null;

  function cut(): void {
    for (const { client, server } of pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
    pairs.clear();
  }
  function join(client: Socket): void {
    const server = connect(serverPort, '127.0.0.1');
    const pair = { client, server };
    let deaf = false;
    let apart = false;
    pairs.add(pair);
    client.on('data', (data) => {
      if (frozen || apart) return;
      server.write(data);
      if (!losing || !data.includes(losing.bytes)) return;
      deaf = true;
      apart = losing.afterMs === null;
      if (losing.afterMs !== null) setTimeout(cut, losing.afterMs);
      losing = null;
    });
    server.on('data', (data) => {
      if (!frozen && !deaf) client.write(data);
    });
    for (const socket of [client, server]) {
      // What breaks on one side breaks on the other.
      socket.on('error', () => {});
      socket.on('close', () => {
        if (apart) return;
        pairs.delete(pair);
        client.destroy();
        server.destroy();
      });
    }
  }

  const listener = createServer(join).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    port: (listener.address() as AddressInfo).port,
    cut,
    freeze: () => {
      frozen = true;
    },
    thaw: () => {
      frozen = false;
      cut();
    },
    loseAnswerTo: (bytes, afterMs) => {
      losing = { bytes, afterMs };
    },
    goDeafAfter: (bytes) => {
      losing = { bytes, afterMs: null };
    },
    close: async () => {
      cut();
      listener.close();
      await once(listener, 'close');
    },
  };
}
