import { createHash } from 'node:crypto';
import { decodePaymentSignatureHeader, encodePaymentRequiredHeader } from '@x402/core/http';
import type { PaymentRequired } from '@x402/core/types';
import { type LightningPayer, NotPaid } from '../../../cli/payers/payer.ts';
import type { Call } from '../../../cli/port.ts';
import { CutOff, type Reply, type Seller } from '../../../cli/seller.ts';
import { invoiceOf } from '../../../scripts/lib/lightning/encode-invoice.ts';

// A seller and a Lightning wallet in memory, which keep books of what was really presented, taken and delivered. Their
// failures are drawn from a seed: lost requests, lost and cut-off answers, 503, refusals before anything is taken.

export const ARC = { network: 'eip155:5042', asset: '0x3600000000000000000000000000000000000000' } as const;
/** What one call costs: in base units, and in millisatoshis. */
export const PRICE = 2000n;
export const PRICE_MSAT = 3000n;
/** What the channel's record says at first. */
export const CHARGED_BEFORE = 250_000n;

export type Rail = 'exact' | 'channel' | 'lightning';

export interface ModelSeller {
  readonly sellerOf: (call: Call) => Seller;
  readonly payer: LightningPayer;
  /** From now on it answers every request. */
  calm(): void;
  /** The references that were presented or paid for each call: nonces, vouchers, payment hashes. */
  readonly presented: ReadonlyMap<string, ReadonlySet<string>>;
  /** How often each call was charged. */
  readonly charges: ReadonlyMap<string, number>;
  /** What the seller could take at the most, by all that it has seen: base units, or millisatoshis. */
  held(): bigint;
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
const KEY = Buffer.alloc(32, 1);
const SELLER = `0x${'5e'.repeat(20)}`;

/** What a request presents: its reference, and what the seller may take by it. */
interface Presented {
  readonly reference: string;
  readonly upTo: bigint;
}

export function createModelSeller(rail: Rail, random: () => number): ModelSeller {
  const presented = new Map<string, Set<string>>();
  const charges = new Map<string, number>();
  /** The call that each reference has bought. */
  const bought = new Map<string, string>();
  const preimages = new Map<string, string>();
  let [isCalm, charged, highest, made] = [false, CHARGED_BEFORE, CHARGED_BEFORE, 0];
  const draws = (chance: number): boolean => !isCalm && random() < chance;
  const note = (target: string, reference: string): void => {
    presented.set(target, (presented.get(target) ?? new Set()).add(reference));
  };

  function demand(target: string): Reply {
    const headers = new Headers();
    if (rail === 'lightning') headers.set('www-authenticate', `L402 macaroon="b3BhcXVl", invoice="${newInvoice()}"`);
    else headers.set('payment-required', encodePaymentRequiredHeader(challengeOf(rail, target) as never));
    return { status: 402, headers, body: Buffer.from('{}') };
  }

  function newInvoice(): string {
    made += 1;
    const preimage = sha256(Buffer.from(`${made}`));
    const paymentHash = sha256(preimage);
    preimages.set(paymentHash.toString('hex'), preimage.toString('hex'));
    const createdAt = Math.floor(Date.now() / 1000);
    return invoiceOf({ privateKey: KEY, amountMsat: PRICE_MSAT, createdAt, paymentHash, description: 'one call' });
  }

  function read(payment: Readonly<Record<string, string>>): Presented {
    if (rail === 'lightning') {
      const preimage = (payment.authorization ?? '').split(':').at(-1) ?? '';
      return { reference: sha256(Buffer.from(preimage, 'hex')).toString('hex'), upTo: PRICE_MSAT };
    }
    const { payload } = decodePaymentSignatureHeader(payment['PAYMENT-SIGNATURE'] ?? '');
    if (rail === 'exact') return { reference: (payload.authorization as { nonce: string }).nonce, upTo: PRICE };
    const { maxClaimableAmount } = payload.voucher as { maxClaimableAmount: string };
    return { reference: maxClaimableAmount, upTo: BigInt(maxClaimableAmount) };
  }

  /** Takes a payment once. Null where it is not good for this call. */
  function take(target: string, { reference, upTo }: Presented): Reply | null {
    const of = bought.get(reference);
    if (of !== undefined && of !== target) return null;
    if (of === undefined) {
      if (rail === 'channel') {
        if (upTo !== charged + PRICE) return null;
        charged = upTo;
      }
      bought.set(reference, target);
      charges.set(target, (charges.get(target) ?? 0) + 1);
    }
    const channelState = { balance: '100000000', totalClaimed: '0', chargedCumulativeAmount: reference };
    const extra = rail === 'channel' ? { chargedAmount: PRICE.toString(), channelState } : undefined;
    const receipt = { success: true, transaction: rail === 'channel' ? '' : reference, network: ARC.network, extra };
    return { status: 200, headers: new Headers({ 'payment-response': base64(receipt) }), body: Buffer.from(target) };
  }

  async function send(target: string, payment: Readonly<Record<string, string>> = {}): Promise<Reply> {
    if (draws(0.06)) throw new Error('the request was lost');
    if (Object.keys(payment).length === 0) return demand(target);
    const shown = read(payment);
    note(target, shown.reference);
    if (shown.upTo > highest) highest = shown.upTo;
    if (draws(0.1)) return { status: 503, headers: new Headers(), body: Buffer.from('{"charged":"unknown"}') };
    // It does not lie: what it has taken it does not call free.
    if (!bought.has(shown.reference) && draws(0.08))
      return { status: 500, headers: new Headers(), body: Buffer.from('{"detail":"x","charged":false}') };
    const reply = take(target, shown);
    if (!reply) return demand(target);
    if (draws(0.12)) throw new Error('the answer was lost');
    if (draws(0.1)) throw new CutOff(reply.headers);
    if (draws(0.05)) return { status: 503, headers: new Headers(), body: Buffer.from('{"charged":"unknown"}') };
    return reply;
  }

  /** Invoices that the wallet has paid. */
  const paid = new Set<string>();
  async function find(_invoice: string, paymentHash: string): Promise<string | null> {
    if (draws(0.1)) throw new Error('no answer');
    return paid.has(paymentHash) ? (preimages.get(paymentHash) ?? null) : null;
  }
  async function pay(invoice: string): Promise<string> {
    const { decodeInvoice } = await import('../../../src/payment/lightning/bolt11.ts');
    const hash = Buffer.from(decodeInvoice(invoice)?.paymentHash ?? []).toString('hex');
    if (draws(0.1)) throw new NotPaid('no route');
    if (paid.has(hash)) throw new Error('the wallet was asked to pay an invoice twice');
    paid.add(hash);
    if (draws(0.15)) throw new Error('the answer was lost');
    return preimages.get(hash) ?? '';
  }

  return {
    sellerOf: (call) => {
      const target = call.kind === 'http' ? call.url.pathname : call.name;
      return { host: 'seller.test', name: `GET http://seller.test${target}`, send: (payment) => send(target, payment) };
    },
    payer: { name: 'the model', limitsFee: false, pay, find, close: () => {} },
    calm: () => {
      isCalm = true;
    },
    presented,
    charges,
    held: () => {
      if (rail === 'channel') return highest - CHARGED_BEFORE;
      if (rail === 'lightning') return BigInt(paid.size) * PRICE_MSAT;
      return BigInt(new Set([...presented.values()].flatMap((of) => [...of])).size) * PRICE;
    },
  };
}

/** The 402 of a call: a plain transfer, or a channel. */
export function challengeOf(rail: 'exact' | 'channel', target: string): PaymentRequired {
  const [scheme, more] =
    rail === 'exact' ? ['exact', {}] : ['batch-settlement', { receiverAuthorizer: SELLER, withdrawDelay: 86_400 }];
  const entry = { ...ARC, scheme, amount: PRICE.toString(), payTo: SELLER, maxTimeoutSeconds: 600 };
  const accepts = [{ ...entry, extra: { name: 'USDC', version: '2', ...more } }];
  return { x402Version: 2, resource: { url: `http://seller.test${target}` }, accepts } as unknown as PaymentRequired;
}
