import { performance } from 'node:perf_hooks';
import { Client } from 'undici';
import { type Exchange, type Opened, openExchange } from '../client/exchange.ts';
import { ExchangeFailed } from '../client/failure.ts';
import { type DialOptions, dial, type Phases } from './dial.ts';
import type { TlsFacts } from './progress.ts';

/** A response from a third party's host, with the time of each step. The caller must close it, read or not. */
export interface GuardedOpened extends Opened {
  readonly timings: Phases & { readonly firstByteMs: number };
  readonly tls: TlsFacts | null;
  close(): Promise<void>;
}

/**
 * One exchange through the whole guard, over its own connection, so that no request relies on the checks of another.
 * Throws `url_not_public` (400), NotFound for a host that does not exist, or ExchangeFailed. No proxy from the environment.
 */
export async function openGuarded(
  exchange: Exchange,
  options: DialOptions,
  signal: AbortSignal,
): Promise<GuardedOpened> {
  const { socket, phases, tls } = await dial(exchange.url, options, signal);
  const sent = performance.now();
  options.progress?.enter('request');
  let used = false;
  const client = new Client(exchange.url.origin, {
    // Only the checked socket may be used; a second socket would not be checked.
    connect: (_options, callback) => {
      const given = used;
      used = true;
      // Called later, because undici would wait for ever when the callback runs synchronously.
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
    options.progress?.answered();
    return { ...opened, timings: { ...phases, firstByteMs: performance.now() - sent }, tls, close };
  } catch (error) {
    await close();
    throw error;
  }
}
