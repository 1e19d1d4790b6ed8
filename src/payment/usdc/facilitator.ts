import type { FacilitatorConfig } from '@x402/core/http';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { z } from 'zod';
import { bytesToHex } from '../../lib/hex.ts';
import type { Upstream } from '../../upstream/client/client.ts';
import type { Authorization, RailProbe } from '../settler.ts';
import { MAX_TIMEOUT_SECONDS } from './authorization.ts';

// What a facilitator is asked and answers: the client of any x402 facilitator, the probe of its `/supported`, how a
// reply to `/settle` is read, and the request that settles. No answer proves a payment.

/** Limits of requests to a remote settler. Its answers are short; `/supported` with many networks has several KiB. */
export const REMOTE_BOUNDS = { maxBytes: 256 * 1024, concurrency: 128, retries: 0 } as const;

export interface SupportedKind {
  readonly x402Version: number;
  readonly scheme: string;
  readonly network: string;
  readonly extra?: Record<string, unknown> | undefined;
}

interface Supported {
  readonly kinds: readonly SupportedKind[];
  /** Addresses that send settlements, by network or by a pattern such as `eip155:*`. */
  readonly signers: Readonly<Record<string, readonly string[]>>;
}

export interface FacilitatorClient {
  /** Sends one request. Never rejects. `id` names the attempt to sell; repeated requests of one attempt share it. */
  settle(request: SettleRequest, id: string, signal: AbortSignal): Promise<SettleReply>;
  /** Rejects without a readable answer. */
  supported(): Promise<Supported>;
}

interface HttpFacilitatorOptions {
  readonly url: string;
  readonly token: string | null;
  readonly timeoutMs: number;
  readonly network: string;
  readonly userAgent: string;
}

/** The SDK's errors may repeat our token: none is shown. It takes 2 MB and loads here; a failure ends the process. */
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

/** Whether it settles version 2, `exact`, this network and a fitting `extra`, and from which address. Never rejects. */
export async function probeSupported(
  client: Pick<FacilitatorClient, 'supported'>,
  network: string,
  fitsExtra: (extra: SupportedKind['extra']) => boolean,
): Promise<RailProbe> {
  const isOurs = (kind: SupportedKind): boolean =>
    kind.x402Version === 2 && kind.scheme === 'exact' && kind.network === network && fitsExtra(kind.extra);
  try {
    const { kinds, signers } = await client.supported();
    if (!kinds.some(isOurs)) return { ok: false, detail: '/supported does not list this network' };
    const sender = signersOf(signers, network).find((one) => ADDRESS.test(one));
    return { ok: true, ...(sender && { sender: sender.toLowerCase() as `0x${string}` }) };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : 'failed' };
  }
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** The network's own signers, then those of all networks of its kind. */
function signersOf(signers: Supported['signers'], network: string): readonly string[] {
  return [network, `${network.split(':')[0]}:*`].flatMap((name) =>
    Object.hasOwn(signers, name) ? (signers[name] ?? []) : [],
  );
}

/** After `accepted` the evidence is read. After `refused` the payment fails, if it was never sent before. */
export type SettleReply =
  | { readonly kind: 'accepted'; readonly transaction: string }
  | { readonly kind: 'pending'; readonly paymentId: string | null }
  | { readonly kind: 'refused'; readonly reason: string }
  /** The Gateway has a transfer with this nonce already. */
  | { readonly kind: 'used' }
  | {
      readonly kind: 'unclear';
      readonly detail: string;
      /** No answer, or none about this payment. The connection to the facilitator is at fault, not the payer. */
      readonly isTransport: boolean;
    };

export const UNHEARD: SettleReply = { kind: 'unclear', detail: 'no readable answer', isTransport: true };

/** Refusals before any transaction: x402's, the EVM scheme's and Circle's codes. Others may come after a broadcast. */
const BEFORE_BROADCAST = new Set([
  ...['insufficient_funds', 'invalid_payload', 'invalid_network', 'invalid_scheme', 'invalid_x402_version'],
  ...['invalid_payment_requirements', 'unsupported_scheme', 'unsupported_payload_type', 'asset_not_deployed_contract'],
  ...['eip6492_factory_not_allowed', 'unsupported_network', 'unsupported_asset', 'unsupported_domain'],
  ...['address_mismatch', 'amount_mismatch', 'invalid_signature', 'authorization_not_yet_valid'],
  ...['authorization_expired', 'authorization_validity_too_short', 'self_transfer', 'insufficient_balance'],
  'wallet_not_found',
  ...[
    ...['scheme', 'network_mismatch', 'missing_eip712_domain', 'recipient_mismatch', 'signature', 'payload_signature'],
    ...['payload_authorization_valid_before', 'payload_authorization_valid_after', 'payload_authorization_value'],
    ...['payload_authorization_value_mismatch', 'payload_recipient_mismatch', 'token_name_mismatch'],
    ...['token_version_mismatch', 'eip3009_not_supported', 'insufficient_balance', 'failed_to_parse_signature'],
    'transaction_simulation_failed',
  ].map((word) => `invalid_exact_evm_${word}`),
]);

const optional = z.string().nullish().catch(null);

/** Circle omits members without a value. The SDK's own schema refuses that. */
const reply = z.object({
  success: z.boolean(),
  transaction: optional,
  network: optional,
  errorReason: optional,
  extensions: z
    .object({ 'settlement-status': z.object({ paymentId: optional }).nullish().catch(null) })
    .nullish()
    .catch(null),
});

/** `unclear` unless plainly a success, a pending settlement, a used nonce, or a refusal before any broadcast. */
export function readReply(status: number, body: unknown, network: string): SettleReply {
  if (status >= 500) return { kind: 'unclear', detail: `HTTP ${status}`, isTransport: true };
  const parsed = reply.safeParse(body);
  if (!parsed.success)
    return { kind: 'unclear', detail: `HTTP ${status} without a settlement's answer`, isTransport: true };
  const { success, transaction, errorReason, extensions } = parsed.data;
  if (parsed.data.network && parsed.data.network !== network)
    return { kind: 'unclear', detail: 'another network', isTransport: true };
  if (success) return { kind: 'accepted', transaction: transaction ?? '' };
  if (errorReason === 'settlement_pending') {
    return { kind: 'pending', paymentId: extensions?.['settlement-status']?.paymentId ?? null };
  }
  if (errorReason === 'nonce_already_used') return { kind: 'used' };
  if (errorReason && !transaction && BEFORE_BROADCAST.has(errorReason)) return { kind: 'refused', reason: errorReason };
  return { kind: 'unclear', detail: describe(errorReason), isTransport: false };
}

/** For our log, only where it looks like a code: an answer may repeat what we sent, even a token. */
function describe(reason: string | null | undefined): string {
  return reason && /^[a-z][a-z0-9_]{2,63}$/.test(reason) ? reason : 'a refusal in no known words';
}

export interface RequestTerms {
  readonly network: `eip155:${number}`;
  readonly usdc: `0x${string}`;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly publicOrigin: string;
}

export interface SettleRequest {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

/** Alike after a restart, and silent about what was bought. Its resource is our price list: Circle requires one. */
export function settleRequest(authorization: Authorization, terms: RequestTerms): SettleRequest {
  const { from, to, value, validAfter, validBefore, nonce, signature } = authorization;
  const paymentRequirements: PaymentRequirements = {
    scheme: 'exact',
    network: terms.network,
    asset: terms.usdc,
    amount: value.toString(),
    payTo: bytesToHex(to),
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    extra: { ...terms.extra },
  };
  const payload = {
    signature: bytesToHex(signature),
    authorization: {
      from: bytesToHex(from),
      to: bytesToHex(to),
      value: value.toString(),
      validAfter: validAfter.toString(),
      validBefore: validBefore.toString(),
      nonce: bytesToHex(nonce),
    },
  };
  const resource = {
    url: `${terms.publicOrigin}/v1/paid`,
    description: 'Data by the call',
    mimeType: 'application/json',
  };
  return {
    paymentPayload: { x402Version: 2, resource, accepted: paymentRequirements, payload },
    paymentRequirements,
  };
}

const supported = z.object({
  signers: z.record(z.string(), z.array(z.string())).nullish().catch(null),
  kinds: z.array(
    z.object({
      x402Version: z.number(),
      scheme: z.string(),
      network: z.string(),
      extra: z
        .record(z.string(), z.unknown())
        .nullish()
        .transform((extra) => extra ?? undefined),
    }),
  ),
});

/** Throws without a valid answer. No error message holds a secret, so `/readyz` may show it. */
export async function supportedKinds(
  upstream: Upstream,
  url: string,
  headers: Record<string, string>,
): Promise<Supported> {
  const answer = await upstream.json({ url, headers }, supported);
  if (answer === null) throw new Error('/supported is not there');
  return { kinds: answer.kinds, signers: answer.signers ?? {} };
}
