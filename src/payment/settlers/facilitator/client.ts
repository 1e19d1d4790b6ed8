import type { FacilitatorConfig } from '@x402/core/http';
import { readReply, type SettleReply, UNHEARD } from './reply.ts';
import type { SettleRequest } from './request.ts';

/** Limits of the requests to a remote settler. Its answers are short. Only `/supported` of a facilitator with many networks has several KiB. */
export const REMOTE_BOUNDS = { maxBytes: 256 * 1024, concurrency: 128, retries: 0 } as const;

/** One kind of payment that a facilitator settles, from its `/supported`. */
export interface SupportedKind {
  readonly x402Version: number;
  readonly scheme: string;
  readonly network: string;
  readonly extra?: Record<string, unknown> | undefined;
}

/** What a facilitator's `/supported` says. */
export interface Supported {
  readonly kinds: readonly SupportedKind[];
  /** The addresses that send settlements, by network or by a pattern such as `eip155:*`. */
  readonly signers: Readonly<Record<string, readonly string[]>>;
}

/** A facilitator: a third party that settles x402 payments. */
export interface FacilitatorClient {
  /** Sends one request and returns its result. Never rejects. `id` names the attempt to sell; a repeated request of one attempt has the same id. */
  settle(request: SettleRequest, id: string, signal: AbortSignal): Promise<SettleReply>;
  /** Rejects when the facilitator gives no readable answer. */
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
 * Any x402 facilitator, through the SDK's own client. The SDK's error messages are dropped: they quote the answer, which may repeat our token.
 * The SDK is loaded here, because it and its copy of zod take 2 MB, and most services settle without it. A failure ends the process, as it would at its
 * start.
 */
export function createHttpFacilitator(options: HttpFacilitatorOptions): FacilitatorClient {
  const { url, token, timeoutMs, network, userAgent } = options;
  const headers = { 'User-Agent': userAgent, ...(token !== null && { Authorization: `Bearer ${token}` }) };
  // One entry per path, because the SDK refuses a flat object.
  const createAuthHeaders = async () => ({ verify: headers, settle: headers, supported: headers });
  const loading = loadSdk({ url, timeoutMs, createAuthHeaders });

  return {
    settle: async ({ paymentPayload, paymentRequirements }) => {
      const { client, SettleError } = await loading;
      try {
        return readReply(200, await client.settle(paymentPayload, paymentRequirements), network);
      } catch (error) {
        if (!(error instanceof SettleError)) return UNHEARD;
        const { statusCode, transaction, errorReason } = error;
        return readReply(statusCode, { success: false, transaction, errorReason, network: error.network }, network);
      }
    },
    supported: async () => {
      const { client } = await loading;
      const { kinds, signers } = await client.getSupported().catch(() => {
        throw new Error('/supported gave no readable answer');
      });
      return { kinds, signers: signers ?? {} };
    },
  };
}

async function loadSdk(config: FacilitatorConfig) {
  const [{ HTTPFacilitatorClient }, { SettleError }] = await Promise.all([
    import('@x402/core/http'),
    import('@x402/core/types'),
  ]);
  return { client: new HTTPFacilitatorClient(config), SettleError };
}
