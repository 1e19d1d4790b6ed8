import type { SettlingProcess } from '../payment/settling.ts';
import type { Notifications } from '../store/ports/instances.ts';
import type { Membership } from './membership.ts';
import { readReport } from './report-text.ts';

const NO_LEADER = 'no instance settles just now';

/** The instance that leads, as the others reach it: asked by notifications, and known by its last report. */
export function createSettlingLink(
  membership: Pick<Membership, 'reported'>,
  notifications: Notifications,
): SettlingProcess {
  let text: string | null = null;
  let read: ReturnType<SettlingProcess['report']> = null;

  /** Reads each text once: every sale asks for the report. */
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
    silence: () => (report() ? null : NO_LEADER),
  };
}
