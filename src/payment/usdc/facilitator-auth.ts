import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { type Clock, nowSeconds } from '../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { addressOf, keccak256, signRecoverable } from '../../lib/secp256k1.ts';
import { jsonOrNull } from '../../lib/untrusted.ts';
import type { Upstream } from '../../upstream/client/client.ts';
import {
  type FacilitatorClient,
  readReply,
  type SettleReply,
  type SettleRequest,
  supportedKinds,
  UNHEARD,
} from './facilitator.ts';
import { addressWord, offChainSeparator, stringWord, typedDigest, typeHash, word } from './token.ts';

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

interface SellerProofOptions {
  readonly key: `0x${string}`;
  readonly network: `eip155:${number}`;
  readonly clock: Clock;
}

/** Circle takes proofs of at most 300 seconds. The rest allows for differing clocks. */
const LIFE_SECONDS = 240;

const REQUEST_TYPEHASH = typeHash(
  'SellerRequest(string purpose,string method,bytes32 bodyHash,string network,address payTo,bytes32 nonce,' +
    'uint256 issuedAt,uint256 expiresAt)',
);

/** An EIP-712 signature over the body's hash. Circle documents only the struct's members; the rest follows EIP-712. */
export function createSellerProof({ key, network, clock }: SellerProofOptions) {
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
