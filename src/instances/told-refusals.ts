import { bytesToHex } from '../lib/hex.ts';
import type { Refusals } from '../payment/settling-local.ts';

/** What the process that settles has told, as those ask for it that sell; `silence` is why nothing is sold whatever it told, or null. */
export function createToldRefusals(known: () => Refusals | null, silence: () => string | null) {
  return {
    unavailable: () => silence() ?? known()?.unavailable ?? null,
    refusesCode: () => known()?.codeRefused ?? null,
    gatewayUnavailable: () => silence() ?? known()?.gatewayUnavailable ?? null,
    rails: () => known()?.rails ?? {},
    refuses: (payer: Uint8Array): string | null => {
      const payers = known()?.payers ?? [];
      if (payers.length === 0) return null;
      const hex = bytesToHex(payer);
      return payers.find(([refused]) => refused === hex)?.[1] ?? null;
    },
  };
}
