import type { NWCClient } from '@getalby/sdk/nwc';
import { z } from 'zod';
import { UpstreamFailed } from '../../../errors.ts';
import { nowSeconds, systemClock } from '../../../lib/clock.ts';
import { orAborted } from '../../../lib/tasks.ts';
import { ExchangeFailed, withinDeadline } from '../../../upstream/client/failure.ts';
import { invoiceText, nodeKeyText, type Receiver, TooMuchPower } from './receiver.ts';

// A wallet over Nostr Wallet Connect (NIP-47). Its connection string is a bearer secret in our configuration, so one
// that may pay is refused (TooMuchPower). The library handles keys, encryption and relays; the exchange is our code.

/** Methods that pay, and the one that makes connections, which could then pay. */
const SPENDING = /(^|_)pay(_|$)|^create_connection$/;

const info = z.object({ pubkey: nodeKeyText });
const power = z.object({ methods: z.array(z.string().regex(/^\w{1,64}$/)).max(100) });
const created = z.object({ invoice: invoiceText });
const looked = z.object({ type: z.string().nullish(), state: z.string().nullish(), settled_at: z.number().nullish() });

export function createNwc(connection: string, timeoutMs: number): Receiver {
  let session: Promise<NwcSession> | null = null;

  async function ask(method: string, params: object, signal: AbortSignal): Promise<NwcAnswer> {
    session ??= openNwcSession(connection);
    const used = session;
    const { request, close } = await used;
    try {
      return await withinDeadline(timeoutMs, signal, (within) => request(method, params, within));
    } catch (error) {
      if (!(error instanceof ExchangeFailed)) throw error;
      // A connection that did not answer may be dead. So the next request opens a new one.
      if (session === used) session = null;
      close();
      throw new UpstreamFailed('nwc', error.message);
    }
  }

  async function resultOf<T>(method: string, params: object, schema: z.ZodType<T>, signal: AbortSignal): Promise<T> {
    return read(method, await ask(method, params, signal), schema);
  }

  return {
    kind: 'nwc',
    nodeKey: async (signal) => (await resultOf('get_info', {}, info, signal)).pubkey,
    inspect: async (signal) => {
      const { methods } = await resultOf('get_info', {}, power, signal);
      const powers = methods.filter((method) => SPENDING.test(method));
      if (powers.length === 0) return [];
      throw new TooMuchPower(
        `the connection may spend (${powers.join(', ')}): ` +
          'make one that may only make_invoice, lookup_invoice and get_info',
      );
    },
    createInvoice: async ({ amountMsat, requestHash, expirySeconds }, signal) => {
      const order = {
        amount: Number(amountMsat),
        description_hash: Buffer.from(requestHash).toString('hex'),
        expiry: expirySeconds,
      };
      return (await resultOf('make_invoice', order, created, signal)).invoice;
    },
    isPaid: async (paymentHash, signal) => {
      const wanted = { payment_hash: Buffer.from(paymentHash).toString('hex') };
      const answer = await ask('lookup_invoice', wanted, signal);
      if ('refused' in answer && answer.refused === 'NOT_FOUND') return false;
      const { type, state, settled_at } = read('lookup_invoice', answer, looked);
      if (type && type !== 'incoming') return false;
      return state ? state === 'settled' : Boolean(settled_at);
    },
    close: async () => {
      const last = session;
      session = null;
      (await last)?.close();
    },
  };
}

function read<T>(method: string, answer: NwcAnswer, schema: z.ZodType<T>): T {
  if ('refused' in answer) throw new UpstreamFailed('nwc', `the wallet refuses ${method} (${answer.refused})`);
  const parsed = schema.safeParse(answer.result);
  if (parsed.success) return parsed.data;
  throw new UpstreamFailed('nwc', `answered ${method} with an unexpected shape`);
}

/** A result, or NIP-47's error code of a refusal. */
type NwcAnswer = { readonly result: unknown } | { readonly refused: string };

interface NwcSession {
  /** Throws ExchangeFailed without an answer, and the signal's own reason when it aborts first. */
  request(method: string, params: object, signal: AbortSignal): Promise<NwcAnswer>;
  close(): void;
}

type Filter = Parameters<NWCClient['pool']['subscribe']>[1];
type NostrEvent = Awaited<ReturnType<NWCClient['signEvent']>>;

/** Event kinds of NIP-47. */
const INFO = 13194;
const REQUEST = 23194;
const RESPONSE = 23195;

const response = z.object({ error: z.object({ code: z.string() }).nullish(), result: z.unknown().optional() });

/** The library's exchange waits a fixed minute, cannot be aborted, reconnects after its end, may end the process. */
export async function openNwcSession(connection: string): Promise<NwcSession> {
  const { NWCClient } = await import('@getalby/sdk/nwc');
  const client = new NWCClient({ nostrWalletConnectUrl: connection });
  const { pool, relayUrls, walletPubkey } = client;
  const ended = new AbortController();
  let negotiated = false;

  /** The first matching event. The library checks its signature; the relays check nothing. */
  function first(filter: Filter, signal: AbortSignal): Promise<NostrEvent> {
    const { promise, resolve } = Promise.withResolvers<NostrEvent>();
    const subscription = pool.subscribe(relayUrls, filter, { onevent: resolve });
    return orAborted(promise, signal).finally(() => subscription.close());
  }

  async function connect(signal: AbortSignal): Promise<void> {
    const any = Promise.any(relayUrls.map((url) => pool.ensureRelay(url))).catch(() => {
      throw new ExchangeFailed('connecting', 'no relay can be reached');
    });
    await orAborted(any, signal);
  }

  /** The wallet lists its encryptions in an event on the relay. An event without the list means the old one. */
  async function negotiate(signal: AbortSignal): Promise<void> {
    if (negotiated) return;
    const { tags } = await first({ kinds: [INFO], authors: [walletPubkey], limit: 1 }, signal);
    const spoken = tags.find(([name]) => name === 'encryption')?.[1]?.split(' ') ?? ['nip04'];
    const value = ['nip44_v2', 'nip04'].find((name) => spoken.includes(name));
    if (value === undefined) throw new ExchangeFailed('connecting', 'the wallet speaks no encryption that we know');
    Object.defineProperty(client, 'encryptionType', { value, configurable: true });
    negotiated = true;
  }

  async function compose(method: string, params: object): Promise<NostrEvent> {
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
    return readReply(await Promise.race([reply, published.then(() => reply)]));
  }

  async function readReply({ content }: NostrEvent): Promise<NwcAnswer> {
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
