import { NotFound } from '../errors.ts';
import { hexToBytes } from '../lib/hex.ts';
import type { Claim, LightningStore } from '../store/ports/proofs.ts';
import type { LedgerStore, Payment, PaymentState } from '../store/ports/sales.ts';
import type { GatewayTransferStore } from '../store/ports/transfers.ts';
import { isTransferId, transactionText, transferIdBytes } from './transaction-id.ts';

/** A payment as the public may see it. It never holds the route, the request or the payer. */
export interface FoundPayment {
  readonly rail: 'usdc' | 'lightning';
  /** The protocol that presented the payment: `x402`, `l402` or `mpp`. Null for one from before this was noted, and for another seller's proof. */
  readonly protocol: string | null;
  /** A decimal integer: USDC base units or millisatoshis. */
  readonly amount: string;
  readonly state: PaymentState | 'claimed' | 'delivered';
  /** The transaction's hash, the Gateway's transfer id until its batch is known, or a Lightning claim's payment hash; null while there is none. */
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
  'This is no id of a payment. An id is a nonce, a transaction hash or a payment hash (64 hex digits), or the id of a Gateway transfer (a UUID).';
const HASH = /^(?:0x)?([0-9a-fA-F]{64})$/;

/**
 * Finds payments by an authorization's nonce, a transaction hash or a payment hash. Each has 32 bytes, so one lookup tries all three. Also finds
 * payments by a Gateway transfer's id, and by the hash of the transaction that settled a batch of such transfers. Throws NotFound for any other text
 * and for unknown payments.
 */
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

/** `sent` is the transaction on the chain where it is known. A transfer in a batch has no block of its own in the ledger. */
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
