import { LIGHTNING_NETWORKS, LNBTC_SPEC_URL } from '../payment/lightning/terms.ts';
import type { FacilitatorCounts } from '../store/ports/proofs.ts';
import type { FacilitatorLimits } from './limits.ts';
import { WHAT_IS_KNOWN } from './messages.ts';

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

/** The facilitator's public description: its address, what it accepts, its limits, and how much it has settled by now, from the ledger. */
export function describeFacilitator(publicOrigin: string, limits: FacilitatorLimits, counts: FacilitatorCounts) {
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
