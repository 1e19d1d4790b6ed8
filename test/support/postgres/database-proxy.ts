import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** How PostgreSQL acknowledges a transaction: the tag of a CommandComplete. */
const COMMITTED = Buffer.from('COMMIT\0');
/** What PostgreSQL sends outside of any transaction: ReadyForQuery with the status `I`. */
const IDLE = Buffer.from('Z\0\0\0\x05I');

/** How an acknowledged COMMIT is lost: the connection breaks before its client gets the answer, or the connection becomes half-open. */
export type CommitLoss = 'cut' | 'swallow';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** No data passes any more, as when a firewall has dropped the connection. */
  isHalfOpen: boolean;
  /** The answer to the COMMIT of its transaction will be lost. */
  marked: boolean;
}

/**
 * A proxy between an instance and PostgreSQL with connection faults. A half-open connection stays half-open; `heal` lets new ones through.
 */
export async function startDatabaseProxy(databaseUrl: string) {
  const target = Number(new URL(databaseUrl).port);
  const pairs = new Set<Pair>();
  let state: 'open' | 'away' | 'isHalfOpen' = 'open';
  let delayMs = 0;
  let losing: { how: CommitLoss; mark: Buffer; lost: () => void } | null = null;

  function reset({ client, server }: Pair): void {
    client.resetAndDestroy();
    server.resetAndDestroy();
  }

  /** Passes data on in its order, with the delay where there is one. */
  function pipe(pair: Pair, from: Socket, to: Socket, isLost: (data: Buffer) => boolean): void {
    let last: Promise<unknown> = Promise.resolve();
    const after = (step: () => void) => {
      last = Promise.all([last, delayMs > 0 && delay(delayMs)]).then(() => {
        if (!pair.isHalfOpen && !to.destroyed) step();
      });
    };
    from.on('data', (data) => {
      if (!pair.isHalfOpen && !isLost(data)) after(() => to.write(data));
    });
    from.on('end', () => after(() => to.end()));
  }

  function marks(pair: Pair, data: Buffer): false {
    if (losing && data.includes(losing.mark)) pair.marked = true;
    return false;
  }

  function loses(pair: Pair, data: Buffer): boolean {
    const isTheOne = pair.marked && data.includes(COMMITTED);
    // A read may have the mark, too. A write that met a conflict is sent again, perhaps over another connection. The next COMMIT here is then
    // another transaction's.
    if (data.includes(IDLE)) pair.marked = false;
    if (!losing || !isTheOne) return false;
    const { how, lost } = losing;
    losing = null;
    if (how === 'cut') reset(pair);
    pair.isHalfOpen = true;
    lost();
    return true;
  }

  function join(client: Socket): void {
    client.on('error', () => {});
    if (state === 'away') return void client.resetAndDestroy();
    const server = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true });
    const pair = { client, server, isHalfOpen: state === 'isHalfOpen', marked: false };
    pairs.add(pair);
    pipe(pair, client, server, (data) => marks(pair, data));
    pipe(pair, server, client, (data) => loses(pair, data));
    server.on('error', () => {});
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('close', () => {
        pairs.delete(pair);
        // A half-open connection does not even report that the other end was closed.
        if (!pair.isHalfOpen) other.destroy();
      });
    }
  }

  const listener = createServer({ allowHalfOpen: true }, join).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = new URL(databaseUrl);
  url.port = String((listener.address() as AddressInfo).port);

  return {
    /** Of the database, through here. */
    url: url.href,
    /** Delays each packet by this time, until `heal`. */
    delay: (ms: number): void => {
      delayMs = ms;
    },
    /** Breaks every connection; new ones are let through. */
    cut: (): void => {
      for (const pair of pairs) reset(pair);
    },
    /** Closes the sending side towards the instance, and goes on to receive. */
    halfClose: (): void => {
      for (const { client } of pairs) client.end();
    },
    /** Breaks every connection, and every new one, until `heal`. */
    away: (): void => {
      state = 'away';
      for (const pair of pairs) reset(pair);
    },
    /** Makes all connections half-open; new ones too, until `heal`. */
    swallow: (): void => {
      state = 'isHalfOpen';
      for (const pair of pairs) pair.isHalfOpen = true;
    },
    /**
     * Loses the answer to the next COMMIT that the database makes of a transaction whose client has sent these bytes, or anything at all;
     * resolves when that has happened.
     */
    loseCommit: (how: CommitLoss, mark: string | Uint8Array = ''): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>();
      for (const pair of pairs) pair.marked = false;
      losing = { how, mark: Buffer.from(mark), lost: resolve };
      return promise;
    },
    heal: (): void => {
      [state, delayMs, losing] = ['open', 0, null];
    },
    stop: async (): Promise<void> => {
      for (const pair of pairs) reset(pair);
      listener.close();
      await once(listener, 'close');
    },
  };
}

export type DatabaseProxy = Awaited<ReturnType<typeof startDatabaseProxy>>;
