import { ExactEvmScheme } from '@x402/evm/exact/client';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

/** What may be bought, and from whom: everything else the client refuses to sign. */
interface BuyerTerms {
  readonly privateKey: `0x${string}`;
  readonly network: `eip155:${number}`;
  readonly asset: `0x${string}`;
  readonly seller: `0x${string}`;
}

/** How a call went that was to be paid for. */
export interface Bought {
  /** Null: no answer came, or not all of it. */
  readonly status: number | null;
  /** Of the authorization that was signed and shown; null when none was. The authorization itself is not kept. */
  readonly nonce: `0x${string}` | null;
  /** The hash that a receipt of success names. */
  readonly transaction: `0x${string}` | null;
  /** From the first request to the last byte. */
  readonly latencyMs: number;
  /** Why there is no answer to the paid request. */
  readonly fault: 'unreachable' | 'terms_refused' | null;
}

/** The service cannot be reached under its public URL. */
class Unreachable extends Error {}

/**
 * Buys as any buyer does, with the official x402 client and nothing of our own payment code, which is what is tested.
 * It signs for the given asset and seller alone, at most the listed price, and follows no redirect: a public URL that leads to
 * somebody else must not cost the wallet anything.
 */
export function createStockBuyer({ privateKey, network, asset, seller }: BuyerTerms) {
  const account = privateKeyToAccount(privateKey);

  /** Gets a URL, paying at most `maxUnits`; rejects only when the signal aborts, with its reason. */
  async function buy(url: string, maxUnits: bigint, signal: AbortSignal): Promise<Bought> {
    let nonce: Bought['nonce'] = null;
    const client = new x402Client()
      .register(network, new ExactEvmScheme(account))
      .setSpendControls({ allowedAssets: [{ network, asset, maxAmountPerPayment: String(maxUnits) }] })
      .registerPolicy((_version, offers) => offers.filter(({ payTo }) => payTo.toLowerCase() === seller.toLowerCase()))
      .onAfterPaymentCreation(async ({ paymentPayload }) => {
        nonce = (paymentPayload.payload as { authorization: { nonce: `0x${string}` } }).authorization.nonce;
      });
    const began = performance.now();
    const ended = (answer: Partial<Bought>): Bought => {
      const latencyMs = Math.round(performance.now() - began);
      return { status: null, nonce, transaction: null, latencyMs, fault: null, ...answer };
    };
    try {
      const answer = await wrapFetchWithPayment(reach, client)(url, { signal, redirect: 'error' });
      await answer.arrayBuffer().catch(unreachable);
      return ended({ status: answer.status, transaction: transactionOf(answer.headers) });
    } catch (error) {
      signal.throwIfAborted();
      return ended({ fault: error instanceof Unreachable ? 'unreachable' : 'terms_refused' });
    }
  }

  return { address: account.address.toLowerCase() as `0x${string}`, buy };
}

export type StockBuyer = ReturnType<typeof createStockBuyer>;

/** Tells what did not reach the service from what the client did not like. */
const reach: typeof fetch = (input, init) => fetch(input, init).catch(unreachable);

function unreachable(cause: unknown): never {
  throw new Unreachable('no answer', { cause });
}

function transactionOf(headers: Headers): `0x${string}` | null {
  try {
    const { success, transaction } = decodePaymentResponseHeader(headers.get('payment-response') ?? '');
    return success && /^0x[0-9a-fA-F]{64}$/.test(transaction) ? (transaction.toLowerCase() as `0x${string}`) : null;
  } catch {
    return null;
  }
}
