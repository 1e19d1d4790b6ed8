import { formatUnits } from 'viem';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { quantity, readOutcome } from '../../../chain/rpc/wire.ts';
import { SETTLE_GAS } from '../../evm/token.ts';

/**
 * Settlements that the relayer must be able to pay before another call is sold. They are counted at twice the gas price, because that is what a
 * transaction offers.
 */
const RESERVE_SETTLEMENTS = 10n;

/** The last read of the relayer's balance, in wei. */
export interface GasReading {
  readonly balanceWei: bigint;
  /** Per unit of gas. */
  readonly gasPriceWei: bigint;
}

/** Watches whether the relayer can pay for gas. A call that could not be settled is then refused before its handler runs. */
export function createGasWatch(
  chain: ChainClient,
  relayer: `0x${string}`,
  onReading: (reading: GasReading) => void = () => {},
) {
  let latest: GasReading | null = null;

  const neededWei = ({ gasPriceWei }: GasReading): bigint => gasPriceWei * 2n * SETTLE_GAS * RESERVE_SETTLEMENTS;

  return {
    /** Rejects when the chain cannot be read. The last reading then stays. */
    async refresh(): Promise<void> {
      const [balance, price] = await chain.batch([
        { method: 'eth_getBalance', params: [relayer, 'latest'] },
        { method: 'eth_gasPrice', params: [] },
      ]);
      const balanceWei = readOutcome(balance, quantity, 'relayer’s balance');
      latest = { balanceWei, gasPriceWei: readOutcome(price, quantity, 'gas price') };
      onReading(latest);
    },
    /** Why nothing can be settled, or null. Null before the first reading too. `expectedWei` is the expected cost of the open settlements. */
    shortage: (expectedWei = 0n): string | null =>
      latest !== null && latest.balanceWei < neededWei(latest) + 2n * expectedWei
        ? 'the relayer is short of gas'
        : null,
    /** The balance as a sentence for the operator; null before the first reading. */
    detail: (): string | null =>
      latest &&
      `the relayer ${relayer} holds ${formatUnits(latest.balanceWei, 18)} USDC for gas; sales stop below ${formatUnits(neededWei(latest), 18)}`,
  };
}
