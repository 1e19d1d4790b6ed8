import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { Ledger } from './ledger.ts';
import type { Settlement } from './settlement.ts';
import type { Settler } from './settler.ts';
import type { RailProbe } from './settling.ts';

/** What processes that only serve must know before they sell. */
export interface Refusals {
  readonly unavailable: string | null;
  /** Why payers with code are not settled; null where they are. */
  readonly codeRefused: string | null;
  /** Payers that are not settled for now, in hex, with the reason. */
  readonly payers: readonly (readonly [payer: string, reason: string])[];
  /** Why nothing can be settled over the Gateway; null where it can, or is not offered. */
  readonly gatewayUnavailable: string | null;
  /** How the remote rails last were. */
  readonly rails: Readonly<Record<string, RailProbe>>;
}

interface CarrierOptions {
  ledger: Pick<Ledger, 'get' | 'waiting'>;
  settlement: Pick<Settlement, 'carry'>;
  settler: Pick<Settler, 'unavailable' | 'refuses' | 'refusesCode'>;
  gatewayUnavailable(): string | null;
  probes(): Readonly<Record<string, RailProbe>>;
}

/** Settles for other processes: what they hand over, and what they need to know beforehand. */
export function createCarrier({ ledger, settlement, settler, ...rails }: CarrierOptions) {
  // A payer comes to be refused through a settlement of his own, and each of those passes here.
  const suspects = new Set<string>();

  async function carry(id: string): Promise<void> {
    const before = await ledger.get(id).catch(() => null);
    await settlement.carry(id).catch(() => {});
    if (before && settler.refuses?.(before.payer)) suspects.add(bytesToHex(before.payer));
  }

  return {
    /** Returns when the row has ended or cannot be brought to an end now; never rejects. */
    carry,
    /**
     * Begins with every intent that nothing was sent for yet; whoever works on one already does so once. Those of this process are among them:
     * it may have handed them over before it was the one that settles.
     */
    carryWaiting: async (): Promise<void> => {
      for await (const { id } of ledger.waiting()) void carry(id);
    },
    refusals: (): Refusals => {
      const payers = [...suspects].flatMap((payer) => {
        const reason = settler.refuses?.(hexToBytes(payer));
        if (!reason) suspects.delete(payer);
        return reason ? [[payer, reason] as const] : [];
      });
      const gatewayUnavailable = rails.gatewayUnavailable();
      const codeRefused = settler.refusesCode?.() ?? null;
      return { unavailable: settler.unavailable(), codeRefused, payers, gatewayUnavailable, rails: rails.probes() };
    },
  };
}

export type Carrier = ReturnType<typeof createCarrier>;
