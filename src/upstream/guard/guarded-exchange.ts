import { performance } from 'node:perf_hooks';
import { Client } from 'undici';
import { type Exchange, type Opened, openExchange } from '../client/exchange.ts';
import { ExchangeFailed } from '../client/failure.ts';
import { type DialOptions, dial, type Phases, type TlsFacts } from './dial.ts';

/** A status from a stranger's host, with how long each step to it took. Read or not, it must be closed. */
export interface GuardedOpened extends Opened {
  readonly timings: Phases & { readonly firstByteMs: number };
  readonly tls: TlsFacts | null;
  close(): Promise<void>;
}

/**
 * One exchange through the whole guard, over a connection of its own: nothing that was checked for one request is used for another.
 * Throws `url_not_public` (400), NotFound for a host that does not exist, or ExchangeFailed. No proxy from the environment.
 */
export async function openGuarded(
  exchange: Exchange,
  options: DialOptions,
  signal: AbortSignal,
): Promise<GuardedOpened> {
  const { socket, phases, tls } = await dial(exchange.url, options, signal);
  const sent = performance.now();
  let used = false;
  const client = new Client(exchange.url.origin, {
    // The one socket that was checked; a second one would not have been.
    connect: (_options, callback) => {
      const given = used;
      used = true;
      // Not at once: undici expects to have returned to its loop by then, and would wait for ever.
      queueMicrotask(() =>
        given ? callback(new ExchangeFailed('answering', 'the connection was lost'), null) : callback(null, socket),
      );
    },
  });
  const close = async () => {
    await client.destroy();
    socket.destroy();
  };
  try {
    const opened = await openExchange(client, exchange, signal);
    return { ...opened, timings: { ...phases, firstByteMs: performance.now() - sent }, tls, close };
  } catch (error) {
    await close();
    throw error;
  }
}
