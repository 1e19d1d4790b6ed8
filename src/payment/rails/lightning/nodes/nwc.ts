import { z } from 'zod';
import { UpstreamFailed } from '../../../../errors.ts';
import { withinDeadline } from '../../../../upstream/client/deadline.ts';
import { ExchangeFailed } from '../../../../upstream/client/failure.ts';
import { invoiceText, nodeKeyText } from './node-answers.ts';
import { type NwcAnswer, type NwcSession, openNwcSession } from './nwc-session.ts';
import { type Receiver, TooMuchPower } from './receiver.ts';

interface NwcOptions {
  /** `nostr+walletconnect://…`, with its secret. */
  readonly connection: string;
  /** For one request, with its connection. */
  readonly timeoutMs: number;
}

/** Methods that pay, and the method that makes connections, which could then pay. */
const SPENDING = /(^|_)pay(_|$)|^create_connection$/;

const info = z.object({ pubkey: nodeKeyText });
const power = z.object({ methods: z.array(z.string().regex(/^\w{1,64}$/)).max(100) });
const created = z.object({ invoice: invoiceText });
const looked = z.object({
  type: z.string().nullish(),
  state: z.string().nullish(),
  settled_at: z.number().nullish(),
});

/**
 * A wallet over Nostr Wallet Connect (NIP-47). Its connection string is a bearer secret in our configuration. So `inspect` throws TooMuchPower for
 * one that may pay. Every method throws UpstreamFailed when the wallet or its relays are away.
 */
export function createNwc({ connection, timeoutMs }: NwcOptions): Receiver {
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
        `the connection may spend (${powers.join(', ')}): make one that may only make_invoice, lookup_invoice and get_info`,
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
