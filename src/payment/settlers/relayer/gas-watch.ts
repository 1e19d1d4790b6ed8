import { formatUnits } from 'viem';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { quantity, readOutcome } from '../../../chain/rpc/wire.ts';
import { SETTLE_GAS } from '../../evm/token.ts';

/** Settlements that must be affordable before another call is sold, at twice the price: that is what is offered for gas. */
const RESERVE_SETTLEMENTS = 10n;

/** What was last read of the relayer's purse, in wei. */
export interface GasReading {
  readonly balanceWei: bigint;
  /** For one gas. */
  readonly gasPriceWei: bigint;
}

/** Watches whether the relayer can pay for gas, so that a call that could not be settled is refused before its handler runs. */
export function createGasWatch(
  chain: ChainClient,
  relayer: `0x${string}`,
  onReading: (reading: GasReading) => void = () => {},
) {
  let latest: GasReading | null = null;

  const neededWei = ({ gasPriceWei }: GasReading): bigint => gasPriceWei * 2n * SETTLE_GAS * RESERVE_SETTLEMENTS;

  return {
    /** Rejects when the chain does not tell; then the last reading stands. */
    async refresh(): Promise<void> {
      const [balance, price] = await chain.batch([
        { method: 'eth_getBalance', params: [relayer, 'latest'] },
        { method: 'eth_gasPrice', params: [] },
      ]);
      const balanceWei = readOutcome(balance, quantity, 'relayer’s balance');
      latest = { balanceWei, gasPriceWei: readOutcome(price, quantity, 'gas price') };
      onReading(latest);
    },
    /** Why nothing can be settled, or null; before the first reading it does not guess. `expectedWei` is what is owed already. */
    shortage: (expectedWei = 0n): string | null =>
      latest !== null && latest.balanceWei < neededWei(latest) + 2n * expectedWei
        ? 'the relayer is short of gas'
        : null,
    /** The balance in words, for the operator; null before the first reading. */
    detail: (): string | null =>
      latest &&
      `the relayer ${relayer} holds ${formatUnits(latest.balanceWei, 18)} USDC for gas; sales stop below ${formatUnits(neededWei(latest), 18)}`,
  };
}
