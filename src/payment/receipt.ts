import type { SettleResponse } from '@x402/core/types';
import { AppError, NotFound } from '../errors.ts';
import type { Log } from '../lib/common.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { Claim, LightningStore } from '../store/ports/lightning.ts';
import type { LedgerStore, Payment, PaymentState } from '../store/ports/payments.ts';
import type { GatewayTransferStore } from '../store/ports/stores.ts';
import type { Sold } from './call.ts';
import type { Ledger } from './ledger.ts';
import type { Receipt } from './protocol.ts';
import { PaymentRefused } from './refusal.ts';
import { isTransferId, transactionText, transferIdBytes } from './settler.ts';

// The end of a sale: the last check, the delivery and its receipt, the refusal of a failed settlement, and the public
// lookup. Nothing is delivered for a payment that is not settled, or whose evidence shows less than the price.

type Network = SettleResponse['network'];

/** x402's receipt of a settled payment, where the scheme says no more. */
export function plainReceipt(payment: Payment): Receipt {
  return {
    success: true,
    payer: bytesToHex(payment.payer),
    transaction: transactionText(payment.transaction) ?? '',
    network: payment.network as Network,
    amount: payment.amount.toString(),
  };
}

interface Delivering {
  readonly ledger: Pick<Ledger, 'delivered'>;
  readonly log: Pick<Log, 'error'>;
}

/**
 * The answer, whose delivery is then noted. Throws Underpaid, with an alert for the operator, unless the evidence shows
 * the price, in USDC base units. An earlier check should prevent that.
 */
export function soldOf(
  { ledger, log }: Delivering,
  receiptOf: (payment: Payment) => Receipt,
  payment: Payment,
  body: Uint8Array,
  price: bigint,
): Sold {
  const paid = payment.charged ?? payment.amount;
  if (payment.state !== 'settled' || paid < price) {
    const error = new Underpaid(payment.id, paid, price);
    log.error({ err: error }, 'ALERT: an answer was held back because less was paid');
    throw error;
  }
  const sold = { body, receipt: receiptOf(payment), at: payment.endedAt };
  if (payment.deliveredAt !== null) return sold;
  return { ...sold, onSent: () => ledger.delivered(payment.id).then(() => {}) };
}

/** 410: paid, but the answer was never delivered and is kept no more. `receipt` tells a channel's buyer the charges. */
export class AnswerGone extends AppError {
  /** Private, so that no log writes the row. */
  readonly #payment: Payment;
  readonly receipt: Receipt | null;
  constructor(payment: Payment, receipt: Receipt | null = null) {
    const detail =
      'this payment was taken, and its answer is no longer kept: it was not fetched in time; ask the seller';
    super(410, 'answer_gone', detail, { charged: true });
    this.#payment = payment;
    this.receipt = receipt;
  }

  withReceipt(receiptOf: (payment: Payment) => Receipt): AnswerGone {
    return new AnswerGone(this.#payment, receiptOf(this.#payment));
  }
}

/** 500: the payment covers less than the price, so the answer is not sent. A bug that an operator must see. */
export class Underpaid extends AppError {
  constructor(payment: string, paid: bigint, price: bigint) {
    const detail = 'This payment does not cover this call; nothing was delivered. Look the payment up by its nonce.';
    super(500, 'underpaid', detail, {
      charged: 'unknown',
      cause: { payment, paid: String(paid), price: String(price) },
    });
  }
}

/** The 402 of a failed settlement, whose reason x402 repeats in PAYMENT-RESPONSE. */
export function refusedSettlement(payment: Payment): PaymentRefused {
  const reason = payment.reason ?? 'unexpected_settle_error';
  const settlement = {
    success: false,
    errorReason: reason,
    payer: bytesToHex(payment.payer),
    transaction: '',
    network: payment.network as Network,
  };
  return new PaymentRefused(reason, { settlement });
}

/** A payment as the public may see it: never the route, the request or the payer. */
export interface FoundPayment {
  readonly rail: 'usdc' | 'lightning';
  /** `x402`, `l402` or `mpp`. Null for a payment from before this was noted, and for another seller's proof. */
  readonly protocol: string | null;
  /** A decimal integer: USDC base units or millisatoshis. */
  readonly amount: string;
  readonly state: PaymentState | 'claimed' | 'delivered';
  /** A transaction's hash, a Gateway transfer's id until its batch is known, or a claim's payment hash. */
  readonly transaction: string | null;
  readonly block: number | null;
  /** Unix seconds of its newest known step. */
  readonly at: number;
  readonly explorerUrl: string | null;
}

interface LookupOptions {
  readonly payments: Pick<LedgerStore, 'findByHash' | 'get'>;
  readonly transfers: Pick<GatewayTransferStore, 'batchOf' | 'paymentsIn'>;
  readonly claims: Pick<LightningStore, 'findClaim'>;
  readonly lightningNetworks: readonly string[];
  readonly explorerUrl: string | null;
}

/** More payments than one batch settles. */
const MAX_FOUND = 500;
const NO_ID =
  'This is no id of a payment. An id is a nonce, a transaction hash or a payment hash (64 hex digits), ' +
  'or the id of a Gateway transfer (a UUID).';
const HASH = /^(?:0x)?([0-9a-fA-F]{64})$/;

/** By a nonce, a transaction or payment hash, a Gateway transfer's id or its batch's transaction. Throws NotFound. */
export function createLookup(options: LookupOptions) {
  const { payments, transfers, claims, lightningNetworks } = options;

  async function claimsOf(hash: Uint8Array): Promise<Claim[]> {
    const found = await Promise.all(
      lightningNetworks.map((network) => claims.findClaim({ network, paymentHash: hash })),
    );
    return found.filter((claim) => claim !== null);
  }

  async function batchedIn(hash: Uint8Array): Promise<Payment[]> {
    const ids = await transfers.paymentsIn(hash, MAX_FOUND);
    const found = await Promise.all(ids.map(payments.get));
    return found.filter((payment) => payment !== null);
  }

  async function show(payment: Payment): Promise<FoundPayment> {
    const batch = isTransferId(payment.transaction) ? await transfers.batchOf(payment.id) : null;
    return showPayment(payment, batch ?? payment.transaction, options.explorerUrl);
  }

  return async (id: string): Promise<{ payments: FoundPayment[] }> => {
    const digits = HASH.exec(id)?.[1];
    const hash = digits === undefined ? transferIdBytes(id) : hexToBytes(`0x${digits}`);
    if (!hash) throw new NotFound(NO_ID, 'payment_not_found');
    const onChain = await payments.findByHash(hash, MAX_FOUND);
    const found = [
      ...(await Promise.all([...onChain, ...(await batchedIn(hash))].map(show))),
      ...(await claimsOf(hash)).map(showClaim),
    ];
    if (found.length === 0) throw unknown();
    return { payments: found };
  };
}

/** `sent`: the transaction on the chain where it is known. A transfer in a batch has no block of its own here. */
function showPayment(payment: Payment, sent: Uint8Array | null, explorerUrl: string | null): FoundPayment {
  const { amount, state, block, endedAt, reservedAt, protocol } = payment;
  const transaction = transactionText(sent);
  const isHash = transaction?.startsWith('0x');
  return {
    rail: 'usdc',
    protocol,
    amount: amount.toString(),
    state,
    transaction,
    block: block || null,
    at: Math.floor((endedAt ?? reservedAt) / 1000),
    explorerUrl: isHash && explorerUrl ? `${explorerUrl}/tx/${transaction}` : null,
  };
}

function showClaim({ paymentHash, amountMsat, claimedAt, grant }: Claim): FoundPayment {
  return {
    rail: 'lightning',
    protocol: grant?.protocol ?? null,
    amount: amountMsat.toString(),
    state: grant?.state ?? 'claimed',
    transaction: Buffer.from(paymentHash).toString('hex'),
    block: null,
    at: Math.floor((grant?.deliveredAt ?? claimedAt) / 1000),
    explorerUrl: null,
  };
}

function unknown(): NotFound {
  return new NotFound(
    'The ledger knows no payment by this nonce, transaction hash, payment hash or transfer id.',
    'payment_not_found',
  );
}
