import { z } from 'zod';
import type { RailProbes, ReportedStatus, SettlingReport } from '../payment/settling.ts';

const payers = z.array(z.tuple([z.string(), z.string()]));
const status = z.object({ unavailable: z.string().nullable(), codeRefused: z.string().nullable(), payers });
const shape = z.object({
  // The five members that the version before reads and writes. An older one than that does not write `codeRefused`.
  unavailable: z.string().nullable(),
  codeRefused: z.string().nullable().default(null),
  payers,
  gatewayUnavailable: z.string().nullable(),
  rails: z.record(
    z.string(),
    z.object({ ok: z.boolean(), detail: z.string().optional(), sender: z.string().optional() }),
  ),
  /** By the rail's name; the version before does not write it. */
  status: z.record(z.string(), status).optional(),
});

const NOTHING: ReportedStatus = { unavailable: null, codeRefused: null, payers: [] };

/**
 * The leader's report as text in the ledger. An instance of the version before reads it too, so the two rails that it knows are also in the
 * members that it reads.
 */
export function reportText({ status, probes }: SettlingReport): string {
  const { unavailable, codeRefused, payers } = status['usdc-exact'] ?? NOTHING;
  const gatewayUnavailable = status['usdc-gateway']?.unavailable ?? null;
  return JSON.stringify({ unavailable, codeRefused, payers, gatewayUnavailable, rails: probes, status });
}

/** Reads the text of this version or of the one before; null where it is neither. */
export function readReport(text: string): SettlingReport | null {
  try {
    const parsed = shape.safeParse(JSON.parse(text));
    if (!parsed.success) return null;
    const { unavailable, codeRefused, payers, gatewayUnavailable, rails, status } = parsed.data;
    const before = {
      'usdc-exact': { unavailable, codeRefused, payers },
      'usdc-gateway': { ...NOTHING, unavailable: gatewayUnavailable },
    };
    return { status: status ?? before, probes: rails as RailProbes };
  } catch {
    return null;
  }
}
