import { z } from 'zod';
import type { LeaderLink, LeaderReport, RailProbes, ReportedStatus } from '../payment/settling.ts';
import type { Notifications } from '../store/ports/instances.ts';
import type { Membership } from './membership.ts';

const NO_LEADER = 'no instance settles just now';

/** Links other instances to the leader: they ask for settlements by notifications, and read its last report. */
export function createLeaderLink(membership: Pick<Membership, 'reported'>, notifications: Notifications): LeaderLink {
  let text: string | null = null;
  let read: ReturnType<LeaderLink['report']> = null;

  /** Parses each text once, because every sale reads the report. */
  function report() {
    const reported = membership.reported();
    if (reported === text) return read;
    text = reported;
    read = reported === null ? null : readReport(reported);
    return read;
  }

  return {
    ask: notifications.ask,
    onEnded: notifications.onEnded,
    report,
    staleReason: () => (report() ? null : NO_LEADER),
  };
}

const payers = z.array(z.tuple([z.string(), z.string()]));
const status = z.object({
  unavailable: z.string().nullable(),
  // The previous version does not write it.
  cannotSend: z.string().nullable().optional(),
  codeRefused: z.string().nullable(),
  payers,
});
const shape = z.object({
  // These five the previous version reads and writes. Older versions do not write `codeRefused`.
  unavailable: z.string().nullable(),
  codeRefused: z.string().nullable().default(null),
  payers,
  gatewayUnavailable: z.string().nullable(),
  rails: z.record(
    z.string(),
    z.object({ ok: z.boolean(), detail: z.string().optional(), sender: z.string().optional() }),
  ),
  /** By the rail's name. The previous version does not write it. */
  status: z.record(z.string(), status).optional(),
});

const NOTHING: ReportedStatus = { unavailable: null, codeRefused: null, payers: [] };

/** The leader's report as text. The previous version reads it too, so it has the members of the two rails it knows. */
export function reportText({ status, probes }: LeaderReport): string {
  const { unavailable, codeRefused, payers } = status['usdc-exact'] ?? NOTHING;
  const gatewayUnavailable = status['usdc-gateway']?.unavailable ?? null;
  return JSON.stringify({ unavailable, codeRefused, payers, gatewayUnavailable, rails: probes, status });
}

/** A report of this version or the previous one; null for any other text. */
export function readReport(text: string): LeaderReport | null {
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
