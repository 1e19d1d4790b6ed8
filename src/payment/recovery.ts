import type { Clock } from '../lib/clock.ts';
import type { Payment } from '../store/ports/sales.ts';
import type { Ledger } from './ledger.ts';
import type { SettlesForOthers } from './settling.ts';

interface RecoveryOptions {
  ledger: Pick<Ledger, 'recover'>;
  /** Boot ids of the other processes that may be alive. Undefined where no other process uses the ledger. */
  living: (() => readonly string[]) | undefined;
  /**
   * Milliseconds after its reservation at which a row of an unlisted process is taken over. That process may have just started and may be listed
   * soon.
   */
  takeOverAfterMs: number;
  clock: Clock;
  log: { warn(detail: object, message: string): void };
}

/** Takes over the rows of dead processes: rows of `dead` at once, rows of other processes outside `living` after `takeOverAfterMs`. */
export function createRecovery(options: RecoveryOptions): SettlesForOthers['takeOver'] {
  const { ledger, living, takeOverAfterMs, clock, log } = options;
  return async (dead = []) => {
    const isGone = ({ bootId, reservedAt }: Payment) =>
      dead.includes(bootId) || reservedAt <= clock.nowMs() - takeOverAfterMs;
    const left = await ledger.recover(living, isGone);
    if (left.released + left.unknown > 0) log.warn(left, 'took over payments of a process that died');
  };
}
