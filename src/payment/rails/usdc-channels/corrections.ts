import { bytesToHex } from '../../../lib/hex.ts';
import { setNewest } from '../../../lib/set-newest.ts';
import type { ChannelStore } from '../../../store/ports/channels.ts';
import type { PaymentRefused } from '../../refusal.ts';
import { channelReceipt } from './channel-answers.ts';
import { StaleVoucher } from './voucher-rules.ts';

/** Channels whose last correction is remembered, about 2 MB. */
const MOST_CORRECTED = 10_000;

/** Answers stale vouchers. */
export function createCorrections(store: Pick<ChannelStore, 'get' | 'findSale'>) {
  // The stale voucher that each channel was last corrected for, and the number of requests that had arrived by then.
  const correctedFor = new Map<string, { readonly max: bigint; readonly arrivals: number }>();
  let arrivals = 0;

  return {
    /** The number of a request that arrives. */
    arrive: (): number => ++arrivals,
    /**
     * The answer to a stale voucher over `max`. A client that presents the same one again after a correction cannot read the chain. It gets the receipt
     * of the sale that it missed and learns the charges from that. A client that can read the chain would not try again by itself then, so the first
     * answer has no receipt. Requests that were made at once are no repetitions, although they carry the same voucher.
     */
    answer: async (
      channelId: Uint8Array,
      max: bigint,
      stale: StaleVoucher,
      arrival: number,
    ): Promise<PaymentRefused> => {
      const key = bytesToHex(channelId);
      const known = correctedFor.get(key);
      const isRepeated = known?.max === max && arrival > known.arrivals;
      setNewest(correctedFor, key, { max, arrivals }, MOST_CORRECTED);
      const missed = isRepeated ? await store.findSale(channelId, max) : null;
      const channel = missed?.state === 'settled' ? await store.get(channelId) : null;
      return missed && channel
        ? new StaleVoucher(channel, { code: stale.code, settlement: channelReceipt(missed) })
        : stale;
    },
  };
}
