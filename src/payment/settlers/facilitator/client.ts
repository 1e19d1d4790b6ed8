import { HTTPFacilitatorClient } from '@x402/core/http';
import { SettleError } from '@x402/core/types';
import { readReply, type SettleReply, UNHEARD } from './reply.ts';
import type { SettleRequest } from './request.ts';

/** How every remote settler is asked: its answers are short, and `/supported` of one with many networks has some KiB. */
export const REMOTE_BOUNDS = { maxBytes: 256 * 1024, concurrency: 128, retries: 0 } as const;

/** One kind of payment that a facilitator settles, as its `/supported` tells. */
export interface SupportedKind {
  readonly x402Version: number;
  readonly scheme: string;
  readonly network: string;
  readonly extra?: Record<string, unknown> | undefined;
}

/** What a facilitator tells of itself. */
export interface Supported {
  readonly kinds: readonly SupportedKind[];
  /** The addresses that send settlements, by network or by a pattern such as `eip155:*`. */
  readonly signers: Readonly<Record<string, readonly string[]>>;
}

/** Somebody who settles x402 payments. */
export interface FacilitatorClient {
  /** One request and what became of it; never rejects. `id` names the payment: the same for the same attempt to sell. */
  settle(request: SettleRequest, id: string, signal: AbortSignal): Promise<SettleReply>;
  /** Rejects when the facilitator does not tell. */
  supported(): Promise<Supported>;
}

interface HttpFacilitatorOptions {
  readonly url: string;
  readonly token: string | null;
  readonly timeoutMs: number;
  readonly network: string;
  readonly userAgent: string;
}

/**
 * Any x402 facilitator, through the SDK's own client. The texts of its errors are dropped: they quote the answer, which may repeat our token.
 */
export function createHttpFacilitator(options: HttpFacilitatorOptions): FacilitatorClient {
  const { url, token, timeoutMs, network, userAgent } = options;
  const headers = { 'User-Agent': userAgent, ...(token !== null && { Authorization: `Bearer ${token}` }) };
  // Keyed by path: the SDK refuses a flat object.
  const createAuthHeaders = async () => ({ verify: headers, settle: headers, supported: headers });
  const client = new HTTPFacilitatorClient({ url, timeoutMs, createAuthHeaders });

  return {
    settle: async ({ paymentPayload, paymentRequirements }) => {
      try {
        return readReply(200, await client.settle(paymentPayload, paymentRequirements), network);
      } catch (error) {
        if (!(error instanceof SettleError)) return UNHEARD;
        const { statusCode, transaction, errorReason } = error;
        return readReply(statusCode, { success: false, transaction, errorReason, network: error.network }, network);
      }
    },
    supported: async () => {
      const { kinds, signers } = await client.getSupported().catch(() => {
        throw new Error('/supported gave no readable answer');
      });
      return { kinds, signers: signers ?? {} };
    },
  };
}
