import { z } from 'zod';
import type { Clock } from '../../../lib/clock.ts';
import { jsonOrNull } from '../../../lib/json-or-null.ts';
import type { Upstream } from '../../../upstream/client/http.ts';
import type { FacilitatorClient } from './client.ts';
import { readReply, type SettleReply, UNHEARD } from './reply.ts';
import type { SettleRequest } from './request.ts';
import type { SellerProof } from './seller-proof.ts';
import { supportedKinds } from './wire.ts';

interface CircleOptions {
  upstream: Upstream;
  url: string;
  /** Exactly one of the two. Circle refuses a request with both. */
  auth: { readonly token: string } | { readonly proof: SellerProof };
  network: string;
  clock: Clock;
  /** How long a pending settlement is polled, in milliseconds. */
  pendingMs: number;
}

const FIRST_POLL_MS = 500;
const LONGEST_POLL_MS = 4000;
/** The id becomes part of a path. */
const PAYMENT_ID = /^[\w-]{1,128}$/;

const status = z.object({ status: z.string(), transaction: z.string().nullish().catch(null) });

/**
 * Circle's Facilitator Service. It uses our own HTTP client instead of the SDK's, for two reasons. The SDK's refuses answers without `transaction`,
 * which this service sends. It also computes the authentication headers without the body, which a proof must sign. A pending settlement is polled by
 * its payment id under our configured URL. The `statusUrl` of an answer is not used, because our token would be sent there.
 */
export function createCircleFacilitator(options: CircleOptions): FacilitatorClient {
  const { upstream, url, auth, network, clock, pendingMs } = options;

  function authHeaders(purpose: string, method: 'GET' | 'POST', body: string): Record<string, string> {
    if ('token' in auth) return { Authorization: `Bearer ${auth.token}` };
    return { 'Facilitator-Seller-Proof': auth.proof.header(purpose, method, body) };
  }

  async function post(request: SettleRequest, id: string, signal: AbortSignal): Promise<SettleReply> {
    // One sale has one identifier, and the next sale with the same authorization has another: Circle repeats its answer for an identifier that it
    // knows.
    const extensions = { 'payment-identifier': { info: { required: false, id: `percall-${id}` } } };
    const paymentPayload = { ...request.paymentPayload, extensions };
    const body = JSON.stringify({ ...request, x402Version: 2, paymentPayload });
    const headers = { 'content-type': 'application/json', ...authHeaders('settle', 'POST', body) };
    const answer = await upstream.fetch({ url: `${url}/settle`, method: 'POST', headers, body, signal });
    return readReply(answer.status, jsonOrNull(answer.body), network);
  }

  /** Polls until the settlement is no longer pending. A failure at this point may have come after a broadcast, so it is not read as a refusal. */
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
