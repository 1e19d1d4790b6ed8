import type { SettlingProcess } from '../payment/settling.ts';
import type { Notifications } from '../store/ports/instances.ts';
import type { Membership } from './membership.ts';
import { readReport } from './report-text.ts';

const NO_LEADER = 'no instance settles just now';

/** The link from the other instances to the leader: they request settlements by notifications and read the leader's last report. */
export function createSettlingLink(
  membership: Pick<Membership, 'reported'>,
  notifications: Notifications,
): SettlingProcess {
  let text: string | null = null;
  let read: ReturnType<SettlingProcess['report']> = null;

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
