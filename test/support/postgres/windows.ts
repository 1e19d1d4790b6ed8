import type { OpenWindows } from '../../../src/lib/limits/count.ts';
import { createRetry, createRun, openPools } from '../../../src/store/db/connections.ts';
import { openPostgresWindows } from '../../../src/store/minute-windows.ts';
import { POSTGRES_LIMITS } from '../ledger/ledger-adapters.ts';
import { createStillClock } from '../still-clock.ts';

export interface WindowsOpener {
  readonly windows: OpenWindows;
  close(): Promise<void>;
}

/** The minute windows of a database, over connections of their own. No busy machine reaches their time-outs. */
export function openWindows(url: string, { salt = 'salt', onRetry = () => {} } = {}): WindowsOpener {
  const pools = openPools({ ...POSTGRES_LIMITS, url, size: 4, applicationName: 'percall limits' });
  // No time passes for the retries, so that no pause ends them.
  const clock = createStillClock();
  clock.stop();
  const run = createRun(pools.writes, createRetry(clock, onRetry));
  return { windows: openPostgresWindows(run, salt), close: pools.close };
}
