import type { Clock } from '../lib/clock.ts';
import type { Payment } from '../store/ports/sales.ts';
import type { Ledger } from './ledger.ts';
import type { SettlesForOthers } from './settling.ts';

interface RecoveryOptions {
  ledger: Pick<Ledger, 'recover'>;
  /** Boot ids of the processes that may be alive beside this one; undefined where it has the ledger for itself. */
  living: (() => readonly string[]) | undefined;
  /** Milliseconds after which the row of a process that is not known to live is taken over: that process may be about to be known. */
  patienceMs: number;
  clock: Clock;
  log: { warn(detail: object, message: string): void };
}

/** Takes over the rows of processes that died: those of `dead` at once, those of processes that are not known to live after a while. */
export function createRecovery(options: RecoveryOptions): SettlesForOthers['takeOver'] {
  const { ledger, living, patienceMs, clock, log } = options;
  return async (dead = []) => {
    const isGone = ({ bootId, reservedAt }: Payment) =>
      dead.includes(bootId) || reservedAt <= clock.nowMs() - patienceMs;
    const left = await ledger.recover(living, isGone);
    if (left.released + left.unknown > 0) log.warn(left, 'took over payments of a process that died');
  };
}
