import type { ChannelStore } from '../../../store/ports/channels.ts';
import type { RelayerMetrics } from '../../relayer/metrics.ts';
import type { WithdrawalAlarms } from './withdrawal-alarms.ts';

const USDC_UNIT = 1_000_000;

/** Publishes what vouchers have charged and no claim has recorded yet, and since when the oldest of it waits. Both are read at each scrape. */
export function publishUnclaimed(
  { publish }: Pick<RelayerMetrics, 'publish'>,
  store: Pick<ChannelStore, 'totals' | 'listUnclaimed' | 'countRefused'>,
  network: string,
  alarms: Pick<WithdrawalAlarms, 'costUsdc'>,
): void {
  publish('channels_claimable_usdc', 'USDC that vouchers have charged and that is not claimed yet', async () => {
    const { charged, claimed, writtenOff } = await store.totals(network);
    return Number(charged - claimed - writtenOff) / USDC_UNIT;
  });
  const help = 'When the oldest unclaimed charge was made; no sample while all charges are claimed';
  publish('channels_oldest_unclaimed_timestamp_seconds', help, async () => {
    const since = (await store.listUnclaimed(network, 1))[0]?.unclaimedSince ?? null;
    return since === null ? null : since / 1000;
  });
  const refused = 'Channels whose claim the contract refuses; they take no voucher until nothing is left to claim';
  publish('channels_refused', refused, () => store.countRefused(network));
  const early = 'USDC of gas for claims that a single RPC provider’s alarm caused, since the start';
  publish('channels_early_claims_cost_usdc', early, async () => alarms.costUsdc());
}
