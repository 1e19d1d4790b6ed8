import { z } from 'zod';
import { UpstreamFailed } from '../../../errors.ts';
import { jsonOrNull } from '../../../lib/json-or-null.ts';
import type { Upstream } from '../../../upstream/client/http.ts';
import type { FacilitatorClient } from '../../settlers/facilitator/client.ts';
import { readReply, UNHEARD } from '../../settlers/facilitator/reply.ts';
import { supportedKinds } from '../../settlers/facilitator/wire.ts';

/** Arc's number in Circle's own numbering of chains. */
const ARC_DOMAIN = 26;
/** Whole USDC and at most six significant decimal places. */
const DECIMAL_USDC = /^\d{1,30}(\.\d{1,6}0*)?$/;

const transfer = z.object({
  id: z.string(),
  status: z.enum(['received', 'batched', 'confirmed', 'completed', 'failed']),
  sendingNetwork: z.string().nullish(),
  recipientNetwork: z.string().nullish(),
  fromAddress: z.string(),
  toAddress: z.string(),
  amount: z.string(),
  nonce: z.string().nullish(),
  txHash: z.string().nullish(),
});

/** One payment in the Gateway's API. Its states in order: received, batched, confirmed, completed; or failed. */
export type GatewayTransfer = z.output<typeof transfer>;

/** The Gateway's API: a facilitator whose transfers can be looked up. */
export interface GatewayClient extends FacilitatorClient {
  /** Null when there is no such transfer. Rejects when the Gateway does not say. */
  transfer(id: string): Promise<GatewayTransfer | null>;
  /** The transfers of a payer with this nonce: none or one, if the service applies the filter. Rejects when the Gateway does not say. */
  search(from: string, nonce: string): Promise<readonly GatewayTransfer[]>;
  /** What each of these depositors can spend, in USDC base units, in their order. Rejects when the balances cannot be read. */
  balances(depositors: readonly string[]): Promise<readonly bigint[]>;
  /** The Gateway's reason against a payment's form, or null. It checks no balance. Rejects when the Gateway does not say. */
  verify(request: Parameters<FacilitatorClient['settle']>[0], signal: AbortSignal): Promise<string | null>;
}

const found = z.object({ transfers: z.array(transfer) });
const deposits = z.object({
  balances: z.array(z.object({ domain: z.number(), depositor: z.string(), balance: z.string().regex(DECIMAL_USDC) })),
});
const verdict = z.object({ isValid: z.boolean(), invalidReason: z.string().nullish().catch(null) });
const WORD = /^[a-z][a-z0-9_]{2,63}$/;

interface GatewayClientOptions {
  upstream: Upstream;
  url: string;
  token: string | null;
  network: string;
}

/**
 * Circle's Gateway over our own HTTP client. The client of Circle's package sets no time limit, hides the status of a failure, quotes whole answers
 * in its errors and cannot look up a transfer. Tests run both clients against the same service.
 */
export function createGatewayClient({ upstream, url, token, network }: GatewayClientOptions): GatewayClient {
  const headers: Record<string, string> = token === null ? {} : { Authorization: `Bearer ${token}` };
  const base = `${url}/v1/x402`;
  const post = (path: string, body: object, signal: AbortSignal) =>
    upstream.fetch({
      url: `${base}/${path}`,
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    });

  return {
    settle: async (request, _id, signal) => {
      try {
        const { status, body } = await post('settle', request, signal);
        return readReply(status, jsonOrNull(body), network);
      } catch {
        return UNHEARD;
      }
    },
    verify: async (request, signal) => {
      const { status, body } = await post('verify', request, signal);
      const parsed = verdict.safeParse(jsonOrNull(body));
      if (status >= 500 || !parsed.success)
        throw new UpstreamFailed(upstream.name, 'did not say whether a payment is valid');
      const { isValid, invalidReason } = parsed.data;
      if (isValid) return null;
      return invalidReason && WORD.test(invalidReason) ? invalidReason : 'invalid_payload';
    },
    balances: async (depositors) => {
      const sources = depositors.map((depositor) => ({ domain: ARC_DOMAIN, depositor }));
      const headersOfPost = { ...headers, 'content-type': 'application/json' };
      const body = JSON.stringify({ token: 'USDC', sources });
      const asked = { url: `${url}/v1/balances`, method: 'POST', headers: headersOfPost, body } as const;
      const answer = await upstream.json(asked, deposits);
      if (answer === null) throw new UpstreamFailed(upstream.name, 'has no balances');
      const here = answer.balances.filter(({ domain }) => domain === ARC_DOMAIN);
      const byDepositor = new Map(here.map(({ depositor, balance }) => [depositor.toLowerCase(), unitsOf(balance)]));
      // The answer may omit an account that never deposited.
      return depositors.map((depositor) => byDepositor.get(depositor.toLowerCase()) ?? 0n);
    },
    transfer: (id) => upstream.json({ url: `${base}/transfers/${encodeURIComponent(id)}`, headers }, transfer),
    search: async (from, nonce) => {
      const query = new URLSearchParams({ from, nonce });
      const answer = await upstream.json({ url: `${base}/transfers?${query}`, headers }, found);
      if (answer === null) throw new UpstreamFailed(upstream.name, 'has no search for transfers');
      return answer.transfers;
    },
    supported: () => supportedKinds(upstream, `${base}/supported`, headers),
  };
}

/** USDC base units of a decimal amount of USDC. */
function unitsOf(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.');
  return BigInt(whole + fraction.slice(0, 6).padEnd(6, '0'));
}
