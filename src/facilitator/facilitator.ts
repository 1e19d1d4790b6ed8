import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { Unavailable } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { OpenWindows } from '../lib/limits/count.ts';
import { LIGHTNING_NETWORKS, LNBTC_SPEC_URL } from '../payment/lightning/terms.ts';
import type { FacilitatorCounts, LightningStore } from '../store/ports/lightning.ts';
import { createCounts, createLimits } from './limits.ts';
import { createSettle, networkOf, type SettleAnswer, WHAT_IS_KNOWN } from './settle.ts';

// The facilitator for Lightning proofs of any seller, over the store that our own Lightning routes use too: its two
// steps of a call (`settle.ts`, under the limits of `limits.ts`), and what it says of itself. It knows no transport.

interface FacilitatorOptions {
  readonly store: Pick<LightningStore, 'claim' | 'facilitatorCounts' | 'clientCount'>;
  readonly clock: Clock;
  readonly config: Config['facilitator'];
  readonly windows?: OpenWindows | undefined;
  readonly publicOrigin: string;
  /** Our node's key in hex; null while there is none. The facilitator works without one. */
  readonly ownPayTo: () => string | null;
  readonly log: Logger;
}

/** `client` is the key under which a call is counted. */
export interface Facilitator {
  /** Counts a call; null admits it. For transports that can ask before they read the body. */
  admit(client: string): Promise<SettleAnswer | null>;
  settleAdmitted(body: unknown, client: string): Promise<SettleAnswer>;
  /** Admits and settles. Every body gets an answer. */
  settle(body: unknown, client: string): Promise<SettleAnswer>;
  /** Throws Unavailable while the ledger cannot be read. */
  descriptor(): Promise<ReturnType<typeof describeFacilitator>>;
}

export function createFacilitator(options: FacilitatorOptions): Facilitator {
  const { store, clock, config, windows, publicOrigin, ownPayTo, log } = options;
  const { dailyCap, maxTimeoutSeconds } = config;
  const counts = createCounts(clock, store, dailyCap, ownPayTo);
  const limits = createLimits(clock, store, counts, config, windows);
  const { admit, settle } = createSettle({ clock, log }, store, limits, counts, maxTimeoutSeconds);
  return {
    admit,
    settleAdmitted: settle,
    settle: async (body, client) => {
      const refused = await admit(client);
      if (!refused) return settle(body, client);
      return { ...refused, body: { ...refused.body, network: networkOf(body) } };
    },
    async descriptor() {
      const figures = await counts.withOwnClaims().catch((error) => {
        log.error({ err: error }, 'the figures of the facilitator cannot be read');
        throw new Unavailable('replay_store_unavailable', 'The store of claims does not answer; try again later.');
      });
      return describeFacilitator(publicOrigin, config, figures);
    },
  };
}

const NOTE = [
  'Settle, then serve: there is no verify step, and no registration.',
  "The proof is checked in the specification's order, and a refusal carries the specification's error string.",
  "Each network:payment_hash is claimed once, in a durable store shared with this service's own Lightning routes.",
  "Nothing moves at settlement: the sats reached the seller's node before the buyer held the preimage.",
  'No payer is returned; no preimage is kept or logged.',
  'One client, an IPv4 address or an IPv6 /48, may claim a tenth of a UTC day; one payee may have a twentieth.',
  'Half of the day is open to every payee.',
  `The other half is for known payees only, with ${WHAT_IS_KNOWN}; each has at most an equal part of it.`,
].join(' ');

export function describeFacilitator(publicOrigin: string, limits: Config['facilitator'], counts: FacilitatorCounts) {
  const { maxTimeoutSeconds, perMinute, dailyCap } = limits;
  const { total, today, nodes, own } = counts;
  return {
    url: `${publicOrigin}/facilitator`,
    scheme: 'exact',
    networks: LIGHTNING_NETWORKS.map(({ id }) => id),
    spec: LNBTC_SPEC_URL,
    registration: 'none',
    routes: { supported: 'GET /facilitator/supported', settle: 'POST /facilitator/settle' },
    limits: { maxTimeoutSeconds, perMinute, dailyCap, settledToday: today },
    settled: { total, today, nodes, forOurOwnNode: own },
    note: NOTE,
  };
}

/** x402's list of what is settled. A requirement's `extra` must name this method and flow. */
export const SUPPORTED = {
  kinds: LIGHTNING_NETWORKS.map(({ id }) => ({
    x402Version: 2,
    scheme: 'exact',
    network: id,
    extra: { assetTransferMethod: 'bolt11', paymentFlow: 'upfront' },
  })),
  extensions: [] as string[],
  signers: {} as Record<string, string[]>,
};
