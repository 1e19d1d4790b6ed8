import type { ChainClient } from '../../chain/client.ts';
import { SETTLE_GAS } from './token.ts';

/** Settlements that must be affordable before another call is sold. */
const RESERVE_SETTLEMENTS = 10n;

/** Watches whether the relayer can pay for gas, so that a call that could not be settled is refused before its handler runs. */
export function createGasWatch(chain: ChainClient, relayer: `0x${string}`) {
  let balanceWei: bigint | null = null;
  let neededWei = 0n;

  return {
    async refresh(): Promise<void> {
      const [balance, price] = await chain.batch([
        { method: 'eth_getBalance', params: [relayer, 'latest'] },
        { method: 'eth_gasPrice', params: [] },
      ]);
      if (!balance || !price || !('result' in balance) || !('result' in price)) return;
      balanceWei = BigInt(String(balance.result));
      neededWei = BigInt(String(price.result)) * 2n * SETTLE_GAS * RESERVE_SETTLEMENTS;
    },
    /** Why nothing can be settled, or null; before the first reading it does not guess. */
    shortage: (): string | null =>
      balanceWei !== null && balanceWei < neededWei ? 'the relayer is short of gas' : null,
  };
}
