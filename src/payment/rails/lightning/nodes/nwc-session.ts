import type { NWCClient } from '@getalby/sdk/nwc';
import { z } from 'zod';
import { nowSeconds, systemClock } from '../../../../lib/clock.ts';
import { orAborted } from '../../../../lib/or-aborted.ts';
import { ExchangeFailed } from '../../../../upstream/client/failure.ts';

/** A wallet's answer to a request: its result, or NIP-47's error code of its refusal. */
export type NwcAnswer = { readonly result: unknown } | { readonly refused: string };

/** One connection to a wallet through its relays. */
export interface NwcSession {
  /** Throws ExchangeFailed when there is no answer, and the signal's own reason when it aborts first. */
  request(method: string, params: object, signal: AbortSignal): Promise<NwcAnswer>;
  /** Ends all running requests. */
  close(): void;
}

type Filter = Parameters<NWCClient['pool']['subscribe']>[1];
type Event = Awaited<ReturnType<NWCClient['signEvent']>>;

/** Event kinds of NIP-47. */
const INFO = 13194;
const REQUEST = 23194;
const RESPONSE = 23195;

const response = z.object({ error: z.object({ code: z.string() }).nullish(), result: z.unknown().optional() });

/**
 * Connects at the first request. The library handles keys, encryption and relays. The exchange is our own code, because the library's waits a fixed
 * minute, cannot be aborted, keeps reconnecting after it is closed, and ends the process on an answer that it cannot decrypt.
 */
export async function openNwcSession(connection: string): Promise<NwcSession> {
  const { NWCClient } = await import('@getalby/sdk/nwc');
  const client = new NWCClient({ nostrWalletConnectUrl: connection });
  const { pool, relayUrls, walletPubkey } = client;
  const ended = new AbortController();
  let negotiated = false;

  /** The first matching event. The library checks its signature; the relays check nothing. */
  function first(filter: Filter, signal: AbortSignal): Promise<Event> {
    const { promise, resolve } = Promise.withResolvers<Event>();
    const subscription = pool.subscribe(relayUrls, filter, { onevent: resolve });
    return orAborted(promise, signal).finally(() => subscription.close());
  }

  async function connect(signal: AbortSignal): Promise<void> {
    const any = Promise.any(relayUrls.map((url) => pool.ensureRelay(url))).catch(() => {
      throw new ExchangeFailed('connecting', 'no relay can be reached');
    });
    await orAborted(any, signal);
  }

  /** Chooses the encryption. The wallet lists what it supports in an event on the relay. An event without the list means the old encryption. */
  async function negotiate(signal: AbortSignal): Promise<void> {
    if (negotiated) return;
    const { tags } = await first({ kinds: [INFO], authors: [walletPubkey], limit: 1 }, signal);
    const spoken = tags.find(([name]) => name === 'encryption')?.[1]?.split(' ') ?? ['nip04'];
    const value = ['nip44_v2', 'nip04'].find((name) => spoken.includes(name));
    if (value === undefined) throw new ExchangeFailed('connecting', 'the wallet speaks no encryption that we know');
    Object.defineProperty(client, 'encryptionType', { value, configurable: true });
    negotiated = true;
  }

  async function compose(method: string, params: object): Promise<Event> {
    try {
      const content: string = await client.encrypt(walletPubkey, JSON.stringify({ method, params }));
      const tags = [
        ['p', walletPubkey],
        ['encryption', client.encryptionType],
      ];
      return await client.signEvent({ kind: REQUEST, created_at: nowSeconds(systemClock), tags, content });
    } catch {
      // The library's error message may contain its input.
      throw new ExchangeFailed('connecting', 'its connection string holds no usable keys');
    }
  }

  async function exchange(method: string, params: object, signal: AbortSignal): Promise<NwcAnswer> {
    await connect(signal);
    await negotiate(signal);
    const event = await compose(method, params);
    const reply = first({ kinds: [RESPONSE], authors: [walletPubkey], '#e': [event.id] }, signal);
    const published = Promise.any(pool.publish(relayUrls, event)).catch(() => {
      throw new ExchangeFailed('answering', 'no relay takes our requests');
    });
    // A relay that never confirms may still have forwarded the request. A relay that refuses ends the wait.
    return read(await Promise.race([reply, published.then(() => reply)]));
  }

  async function read({ content }: Event): Promise<NwcAnswer> {
    try {
      const { error, result } = response.parse(JSON.parse(await client.decrypt(walletPubkey, content)));
      return error ? { refused: /^[A-Z_]{1,40}$/.test(error.code) ? error.code : 'no known code' } : { result };
    } catch {
      throw new ExchangeFailed('reading', 'answered what cannot be read');
    }
  }

  return {
    async request(method, params, signal) {
      const over = new AbortController();
      try {
        return await exchange(method, params, AbortSignal.any([signal, ended.signal, over.signal]));
      } finally {
        over.abort();
      }
    },
    close() {
      ended.abort(new ExchangeFailed('reading', 'the connection was closed'));
      client.close();
    },
  };
}
