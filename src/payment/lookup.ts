import { NotFound } from '../errors.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { LedgerStore, Payment, PaymentState } from '../store/ledger-port.ts';
import type { Claim, LightningStore } from '../store/lightning-port.ts';

/** A payment as anyone may see it: never the route, the request or the payer. */
export interface FoundPayment {
  readonly rail: 'usdc' | 'lightning';
  /** As on the wire: base units of USDC, millisatoshis. */
  readonly amount: string;
  readonly state: PaymentState | 'claimed' | 'delivered';
  /** The transaction's hash, or the payment hash of a Lightning claim; null while there is none. */
  readonly transaction: string | null;
  readonly block: number | null;
  /** Unix seconds of its newest known step. */
  readonly at: number;
  readonly explorerUrl: string | null;
}

interface LookupOptions {
  readonly payments: Pick<LedgerStore, 'findByHash'>;
  readonly claims: Pick<LightningStore, 'findClaim'>;
  readonly lightningNetworks: readonly string[];
  readonly explorerUrl: string | null;
}

/** More than a batch settles at once. */
const MAX_FOUND = 500;
const HASH = /^(?:0x)?([0-9a-fA-F]{64})$/;

/**
 * Finds payments by an authorization's nonce, a transaction hash or a payment hash: 32 bytes each, so one look asks for all of them.
 * Throws NotFound for anything else and for what the ledger does not know.
 */
export function createLookup({ payments, claims, lightningNetworks, explorerUrl }: LookupOptions) {
  return async (id: string): Promise<{ payments: FoundPayment[] }> => {
    const digits = HASH.exec(id)?.[1]?.toLowerCase();
    if (digits === undefined) throw unknown();
    const hash = hexToBytes(`0x${digits}`);
    const onChain = await payments.findByHash(hash, MAX_FOUND);
    const claimed = await Promise.all(
      lightningNetworks.map((network) => claims.findClaim({ network, paymentHash: hash })),
    );
    const found = [
      ...onChain.map((payment) => showPayment(payment, explorerUrl)),
      ...claimed.flatMap((claim) => (claim ? [showClaim(claim)] : [])),
    ];
    if (found.length === 0) throw unknown();
    return { payments: found };
  };
}

function showPayment(payment: Payment, explorerUrl: string | null): FoundPayment {
  const { amount, state, block, endedAt, reservedAt } = payment;
  const transaction = payment.transaction && bytesToHex(payment.transaction);
  return {
    rail: 'usdc',
    amount: amount.toString(),
    state,
    transaction,
    block,
    at: Math.floor((endedAt ?? reservedAt) / 1000),
    explorerUrl: transaction && explorerUrl ? `${explorerUrl}/tx/${transaction}` : null,
  };
}

function showClaim({ paymentHash, amountMsat, claimedAt, grant }: Claim): FoundPayment {
  return {
    rail: 'lightning',
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
    'The ledger knows no payment by this nonce, transaction hash or payment hash.',
    'payment_not_found',
  );
}
