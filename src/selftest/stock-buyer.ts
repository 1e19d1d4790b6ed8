import { ExactEvmScheme } from '@x402/evm/exact/client';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

/** What may be bought, and from which seller. The client refuses to sign anything else. */
interface BuyerTerms {
  readonly privateKey: `0x${string}`;
  readonly network: `eip155:${number}`;
  readonly asset: `0x${string}`;
  readonly seller: `0x${string}`;
}

/** The result of a call that had to be paid. */
export interface Bought {
  /** Null: no answer came, or only a part of it. */
  readonly status: number | null;
  /** The nonce of the authorization that was signed and presented; null when none was. The authorization itself is not kept. */
  readonly nonce: `0x${string}` | null;
  /** The transaction hash in a receipt of success. */
  readonly transaction: `0x${string}` | null;
  /** From the first request to the last byte. */
  readonly latencyMs: number;
  /** Why there is no answer to the paid request. */
  readonly fault: 'unreachable' | 'terms_refused' | null;
}

/** The service cannot be reached under its public URL. */
class Unreachable extends Error {}

/**
 * Buys with the official x402 client, like any buyer. It uses none of our payment code, because that code is under test.
 * It signs only for the given asset and seller, and at most the listed price.
 * It follows no redirect: a public URL that leads to a third party must not cost the wallet anything.
 */
export function createStockBuyer({ privateKey, network, asset, seller }: BuyerTerms) {
  const account = privateKeyToAccount(privateKey);

  /** Gets a URL and pays at most `maxUnits`. Rejects only when the signal aborts, with the signal's reason. */
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

/** Marks errors of the connection, so that they differ from a refusal by the client. */
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
