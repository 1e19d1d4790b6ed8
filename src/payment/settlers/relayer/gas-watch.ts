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
  /** Sales stop below this balance. */
  readonly neededWei: bigint;
  readonly relayer: `0x${string}`;
}

/** Watches whether the relayer can pay for gas. A call that could not be settled is then refused before its handler runs. */
export function createGasWatch(
  chain: ChainClient,
  relayer: `0x${string}`,
  onReading: (reading: GasReading) => void = () => {},
) {
  let latest: GasReading | null = null;

  return {
    /** Rejects when the chain cannot be read. The last reading then stays. */
    async refresh(): Promise<void> {
      const [balance, price] = await chain.batch([
        { method: 'eth_getBalance', params: [relayer, 'latest'] },
        { method: 'eth_gasPrice', params: [] },
      ]);
      const balanceWei = readOutcome(balance, quantity, 'relayer’s balance');
      const gasPriceWei = readOutcome(price, quantity, 'gas price');
      const neededWei = gasPriceWei * 2n * SETTLE_GAS * RESERVE_SETTLEMENTS;
      latest = { balanceWei, gasPriceWei, neededWei, relayer };
      onReading(latest);
    },
    /** Why nothing can be settled, or null. Null before the first reading too. `expectedWei` is the expected cost of the open settlements. */
    shortage: (expectedWei = 0n): string | null =>
      latest !== null && latest.balanceWei < latest.neededWei + 2n * expectedWei ? 'the relayer is short of gas' : null,
    /**
     * What everyone may see; null before the first reading. The address and the balance are in the metrics alone: they would tell a third party what it
     * costs to stop the sales.
     */
    detail: (): string | null => latest && `gas for ${RESERVE_SETTLEMENTS} settlements is kept in reserve`,
  };
}
