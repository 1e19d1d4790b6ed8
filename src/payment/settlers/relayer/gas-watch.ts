import type { RpcCall } from '../../../chain/rpc/call.ts';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { quantity, type RpcOutcome, readOutcome } from '../../../chain/rpc/wire.ts';
import { formatNative } from '../../../lib/units.ts';
import { SETTLE_GAS } from '../../usdc/token.ts';

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

interface GasWatchOptions {
  readonly chain: ChainClient;
  readonly relayer: `0x${string}`;
  readonly onReading?: ((reading: GasReading) => void) | undefined;
  /** Is told when the relayer has become short of gas, at the first reading too, and when it has enough again. */
  readonly log: { info(detail: object, message: string): void; warn(detail: object, message: string): void };
}

/** What the balance has above what is needed, in wei; below zero where it is too little. */
const slackOf = ({ balanceWei, neededWei }: GasReading): bigint => balanceWei - neededWei;

/** Tells the log of each change between short and enough. It may name what the public detail may not. */
function createTelling(log: GasWatchOptions['log']) {
  let wasShort = false;
  return (reading: GasReading, expectedWei: bigint): void => {
    const isShort = slackOf(reading) < 2n * expectedWei;
    if (isShort === wasShort) return;
    wasShort = isShort;
    const { relayer, balanceWei, neededWei } = reading;
    const balanceUsdc = formatNative(balanceWei);
    const detail = { relayer, balanceUsdc, neededUsdc: formatNative(neededWei + 2n * expectedWei) };
    if (isShort) log.warn(detail, 'the relayer is short of gas, and sales stop: send USDC to its address');
    else log.info(detail, 'the relayer has enough gas again');
  };
}

/** Watches whether the relayer can pay for gas. A call that could not be settled is then refused before its handler runs. */
export function createGasWatch({ chain, relayer, onReading, log }: GasWatchOptions) {
  let latest: GasReading | null = null;
  const tell = createTelling(log);
  const questions: readonly RpcCall[] = [
    { method: 'eth_getBalance', params: [relayer, 'latest'] },
    { method: 'eth_gasPrice', params: [] },
  ];

  function readingOf([balance, price]: readonly RpcOutcome[]): GasReading {
    const balanceWei = readOutcome(balance, quantity, 'relayer’s balance');
    const gasPriceWei = readOutcome(price, quantity, 'gas price');
    return { balanceWei, gasPriceWei, neededWei: gasPriceWei * 2n * SETTLE_GAS * RESERVE_SETTLEMENTS, relayer };
  }

  /** The second lowest of the readings of all hosts, so that two must say that it is too little; a lone one's own. */
  async function secondLowest(first: GasReading): Promise<GasReading> {
    const heard = await chain.each(questions).catch(() => []);
    const readings = heard.flatMap((outcomes) => {
      try {
        return [readingOf(outcomes)];
      } catch {
        return [];
      }
    });
    const [lowest = first, second] = readings.sort((one, other) => (slackOf(one) < slackOf(other) ? -1 : 1));
    return second ?? lowest;
  }

  return {
    /**
     * Reads the balance and the price. A reading that would stop sales counts once two providers give one, where two or
     * more are configured. `expectedWei` is the expected cost of the open settlements. Rejects when the chain cannot be
     * read; the last reading then stays.
     */
    async refresh(expectedWei = 0n): Promise<void> {
      const first = readingOf(await chain.batch(questions));
      const isShort = slackOf(first) < 2n * expectedWei;
      latest = isShort && chain.agreed.witnesses > 1 ? await secondLowest(first) : first;
      onReading?.(latest);
      tell(latest, expectedWei);
    },
    /** Why nothing can be settled, or null. Null before the first reading too. `expectedWei` is the expected cost of the open settlements. */
    shortage: (expectedWei = 0n): string | null =>
      latest !== null && slackOf(latest) < 2n * expectedWei ? 'the relayer is short of gas' : null,
    /**
     * What everyone may see; null before the first reading. The address and the balance are in the metrics alone: they would tell a third party what it
     * costs to stop the sales.
     */
    detail: (): string | null => latest && `gas for ${RESERVE_SETTLEMENTS} settlements is kept in reserve`,
  };
}
