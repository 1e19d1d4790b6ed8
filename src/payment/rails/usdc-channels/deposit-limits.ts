import type { ChannelsConfig } from '../../../config/rails.ts';
import { TooMany } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import { openClientWindows } from '../../../lib/limits/client-limit.ts';
import { createMinuteWindows, MAX_CLIENTS } from '../../../lib/limits/minute-windows.ts';
import { clientTakes, takeAll } from '../../../lib/limits/take-all.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';

// A deposit costs us 0.1M to 0.2M gas, 0.002 to 0.004 USDC at 20 gwei. A payer may ask for its money back after one call, or withdraw it, and pay the
// same money in again.

const DAY_MS = 86_400_000;

interface DepositLimitsOptions {
  store: Pick<ChannelStore, 'getRefunded'>;
  config: Pick<ChannelsConfig, 'minDeposit' | 'depositsADay'>;
  clock: Clock;
}

/**
 * Counts the deposits of a day that have not earned their gas, for each payer, each client and each IPv6 /48. A day begins with its first deposit. The
 * counts are in this process's memory and lost at a restart, because they protect gas and not sales.
 */
export function createDepositLimits({
  store,
  config: { minDeposit, depositsADay: most },
  clock,
}: DepositLimitsOptions) {
  const open = () => createMinuteWindows(clock, MAX_CLIENTS, DAY_MS);
  const payers = open();
  const clients = openClientWindows(open, 'deposits');

  /**
   * Whether calls have used at least half of all that was put into the channel and not withdrawn. The gas of one more deposit is earned then. What was
   * written off has paid for nothing.
   */
  async function isSpent({ id, charged, writtenOff, state }: Channel): Promise<boolean> {
    const { balance, refundNonce } = state;
    const spent = charged - writtenOff;
    if (2n * spent < (balance > minDeposit ? balance : minDeposit)) return false;
    const refunded = refundNonce === 0n ? 0n : await store.getRefunded(id);
    return 2n * spent >= balance + refunded;
  }

  /**
   * Counts a deposit into this channel, and returns a function that takes it back because no transaction was sent for it. A top-up of a channel that
   * was spent is never counted or refused. Throws TooMany (429, `too_many_deposits`) when the payer or the client has had its deposits of the day.
   */
  async function take(channel: Channel, client: string): Promise<() => void> {
    if (await isSpent(channel)) return () => {};
    const ofPayer = (seconds: number) => tooMany('payer', seconds);
    return takeAll([
      { windows: payers, key: bytesToHex(channel.payer), limit: most.payer, refusal: ofPayer },
      ...clientTakes(clients, client, most.client, (seconds) => tooMany('client', seconds)),
    ]);
  }

  return {
    take,
    /** The same refusal, without counting. */
    check: async (channel: Channel, client: string): Promise<void> => (await take(channel, client))(),
  };
}

export type DepositLimits = ReturnType<typeof createDepositLimits>;

function tooMany(whose: 'payer' | 'client', retryAfterSeconds: number): TooMany {
  const detail = `this ${whose} has made too many deposits today whose money was not spent; use the channels that hold money, or pay each call by the entry "exact"`;
  return new TooMany('too_many_deposits', detail, retryAfterSeconds);
}
