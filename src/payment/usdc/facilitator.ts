import { randomBytes } from 'node:crypto';
import type { FacilitatorConfig } from '@x402/core/http';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { z } from 'zod';
import { type Clock, nowSeconds } from '../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { addressOf, keccak256, signRecoverable } from '../../lib/secp256k1.ts';
import { jsonOrNull } from '../../lib/untrusted.ts';
import type { Upstream } from '../../upstream/client/client.ts';
import type { Authorization, RailProbe } from '../settler.ts';
import { MAX_TIMEOUT_SECONDS } from './authorization.ts';
import { addressWord, offChainSeparator, stringWord, typedDigest, typeHash, word } from './token.ts';

// What a facilitator is asked and answers: the client of any x402 facilitator, the probe of its `/supported`, how a
// reply to `/settle` is read, and the request that settles; then Circle's, and how we prove to it who we are. No answer
// proves a payment.

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
  return { paymentPayload: { x402Version: 2, resource, accepted: paymentRequirements, payload }, paymentRequirements };
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

// Circle's Facilitator Service, over our own HTTP client: the SDK's refuses answers without `transaction`, which this
// service sends, and makes headers without the body, which a proof must sign. A pending settlement is polled under our
// configured URL: an answer's `statusUrl` would get our token.

interface CircleOptions {
  upstream: Upstream;
  url: string;
  /** One of the two. Circle refuses a request with both. */
  auth: { readonly token: string } | { readonly proof: SellerProof };
  network: string;
  clock: Clock;
  /** Milliseconds that a pending settlement is polled. */
  pendingMs: number;
}

const FIRST_POLL_MS = 500;
const LONGEST_POLL_MS = 4000;
/** It becomes part of a path. */
const PAYMENT_ID = /^[\w-]{1,128}$/;

const status = z.object({ status: z.string(), transaction: z.string().nullish().catch(null) });

export function createCircleFacilitator(options: CircleOptions): FacilitatorClient {
  const { upstream, url, auth, network, clock, pendingMs } = options;

  function authHeaders(purpose: string, method: 'GET' | 'POST', body: string): Record<string, string> {
    if ('token' in auth) return { Authorization: `Bearer ${auth.token}` };
    return { 'Facilitator-Seller-Proof': auth.proof.header(purpose, method, body) };
  }

  async function post(request: SettleRequest, id: string, signal: AbortSignal): Promise<SettleReply> {
    // Each sale has its own, also with the same authorization: Circle repeats its answer for one that it knows.
    const extensions = { 'payment-identifier': { info: { required: false, id: `percall-${id}` } } };
    const paymentPayload = { ...request.paymentPayload, extensions };
    const body = JSON.stringify({ ...request, x402Version: 2, paymentPayload });
    const headers = { 'content-type': 'application/json', ...authHeaders('settle', 'POST', body) };
    const answer = await upstream.fetch({ url: `${url}/settle`, method: 'POST', headers, body, signal });
    return readReply(answer.status, jsonOrNull(answer.body), network);
  }

  /** A failure now may have come after a broadcast, so it is no refusal. */
  async function poll(paymentId: string, signal: AbortSignal): Promise<SettleReply> {
    const until = clock.nowMs() + pendingMs;
    for (let pause = FIRST_POLL_MS; clock.nowMs() + pause < until; pause = Math.min(pause * 2, LONGEST_POLL_MS)) {
      await clock.sleep(pause, signal);
      // A proof is valid for one request, so each poll needs a new one.
      const headers = authHeaders('status', 'GET', '');
      const got = await upstream.json({ url: `${url}/status/${paymentId}`, headers, signal }, status).catch(() => null);
      if (got?.status === 'completed') return { kind: 'accepted', transaction: got.transaction ?? '' };
      if (got?.status === 'failed')
        return { kind: 'unclear', detail: 'failed after it was pending', isTransport: false };
    }
    return { kind: 'pending', paymentId };
  }

  return {
    settle: async (request, id, signal) => {
      try {
        const reply = await post(request, id, signal);
        if (reply.kind !== 'pending' || reply.paymentId === null || !PAYMENT_ID.test(reply.paymentId)) return reply;
        return await poll(reply.paymentId, signal);
      } catch {
        return UNHEARD;
      }
    },
    supported: () => supportedKinds(upstream, `${url}/supported`, {}),
  };
}

/** Circle takes proofs of at most 300 seconds. The rest allows for differing clocks. */
const LIFE_SECONDS = 240;

const REQUEST_TYPEHASH = typeHash(
  'SellerRequest(string purpose,string method,bytes32 bodyHash,string network,address payTo,bytes32 nonce,' +
    'uint256 issuedAt,uint256 expiresAt)',
);

/** An EIP-712 signature over the body's hash. Circle documents only the struct's members; the rest follows EIP-712. */
export function createSellerProof(clock: Clock, key: `0x${string}`, network: `eip155:${number}`) {
  const privateKey = hexToBytes(key);
  const payTo = addressOf(privateKey);
  const chainId = Number(network.split(':')[1]);
  const separator = offChainSeparator('Circle Facilitator Seller Request', '1', chainId);

  return {
    payTo,
    /** `purpose`: the operation. `body`: what is sent, empty for GET. */
    header: (purpose: string, method: 'GET' | 'POST', body: string): string => {
      const issuedAt = nowSeconds(clock);
      const expiresAt = issuedAt + LIFE_SECONDS;
      const nonce = randomBytes(32);
      const digest = typedDigest(separator, [
        REQUEST_TYPEHASH,
        ...[stringWord(purpose), stringWord(method), keccak256(Buffer.from(body, 'utf8')), stringWord(network)],
        ...[addressWord(hexToBytes(payTo)), nonce, word(BigInt(issuedAt)), word(BigInt(expiresAt))],
      ]);
      const signature = bytesToHex(signRecoverable(digest, privateKey));
      const proof = { version: 1, signature, network, payTo, nonce: bytesToHex(nonce), issuedAt, expiresAt };
      return Buffer.from(JSON.stringify(proof), 'utf8').toString('base64url');
    },
  };
}

type SellerProof = ReturnType<typeof createSellerProof>;
