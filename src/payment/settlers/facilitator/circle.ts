import { z } from 'zod';
import type { Clock } from '../../../lib/clock.ts';
import type { Upstream } from '../../../upstream/client/http.ts';
import type { FacilitatorClient } from './client.ts';
import { readReply, type SettleReply, UNHEARD } from './reply.ts';
import type { SettleRequest } from './request.ts';
import type { SellerProof } from './seller-proof.ts';
import { jsonOrNull, supportedKinds } from './wire.ts';

interface CircleOptions {
  upstream: Upstream;
  url: string;
  /** Exactly one of the two: Circle refuses both at once. */
  auth: { readonly token: string } | { readonly proof: SellerProof };
  network: string;
  clock: Clock;
  /** How long a pending settlement is asked after. */
  pendingMs: number;
}

const FIRST_POLL_MS = 500;
const LONGEST_POLL_MS = 4000;
/** It goes into a path. */
const PAYMENT_ID = /^[\w-]{1,128}$/;

const status = z.object({ status: z.string(), transaction: z.string().nullish().catch(null) });

/**
 * Circle's Facilitator Service. Our own HTTP instead of the SDK's client, which refuses this service's answers where `transaction` is
 * left out, and gives a proof no sight of the body. A settlement that is pending is asked after by its payment id under our base URL:
 * the `statusUrl` of an answer is not followed, because our token would go with it.
 */
export function createCircleFacilitator(options: CircleOptions): FacilitatorClient {
  const { upstream, url, auth, network, clock, pendingMs } = options;

  function authHeaders(purpose: string, method: 'GET' | 'POST', body: string): Record<string, string> {
    if ('token' in auth) return { Authorization: `Bearer ${auth.token}` };
    return { 'Facilitator-Seller-Proof': auth.proof.header(purpose, method, body) };
  }

  async function post(request: SettleRequest, id: string, signal: AbortSignal): Promise<SettleReply> {
    // The same for one sale, another for the next with the same authorization: Circle answers a known one as it did before.
    const extensions = { 'payment-identifier': { info: { required: false, id: `percall-${id}` } } };
    const paymentPayload = { ...request.paymentPayload, extensions };
    const body = JSON.stringify({ ...request, x402Version: 2, paymentPayload });
    const headers = { 'content-type': 'application/json', ...authHeaders('settle', 'POST', body) };
    const answer = await upstream.fetch({ url: `${url}/settle`, method: 'POST', headers, body, signal });
    return readReply(answer.status, jsonOrNull(answer.body), network);
  }

  /** Asks until it is not pending any more. A failure that comes now may have come after a broadcast, so it is no refusal. */
  async function follow(paymentId: string, signal: AbortSignal): Promise<SettleReply> {
    const until = clock.nowMs() + pendingMs;
    for (let pause = FIRST_POLL_MS; clock.nowMs() + pause < until; pause = Math.min(pause * 2, LONGEST_POLL_MS)) {
      await clock.sleep(pause, signal);
      // Anew each time: a proof is good for one request.
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
        return await follow(reply.paymentId, signal);
      } catch {
        return UNHEARD;
      }
    },
    supported: () => supportedKinds(upstream, `${url}/supported`, {}),
  };
}
