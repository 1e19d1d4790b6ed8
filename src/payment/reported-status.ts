import { bytesToHex } from '../lib/hex.ts';
import type { ReportedStatus, Settling, SettlingProcess } from './settling.ts';

/**
 * Reads the status of the rails from the last report of the process that settles. While no report counts, every rail is unavailable, so nothing is
 * sold.
 */
export function createReportedStatus({
  report,
  staleReason,
}: Pick<SettlingProcess, 'report' | 'staleReason'>): Pick<Settling, 'status' | 'probes'> {
  return {
    status: (rail) => {
      const reported = (): ReportedStatus | undefined => report()?.status[rail];
      return {
        unavailable: () => staleReason() ?? reported()?.unavailable ?? null,
        cannotSend: () => {
          const { unavailable = null, cannotSend = unavailable } = reported() ?? {};
          return staleReason() ?? cannotSend;
        },
        refusesCode: () => reported()?.codeRefused ?? null,
        refuses: (payer) => {
          const payers = reported()?.payers ?? [];
          if (payers.length === 0) return null;
          const hex = bytesToHex(payer);
          return payers.find(([refused]) => refused === hex)?.[1] ?? null;
        },
      };
    },
    probes: () => report()?.probes ?? {},
  };
}
