import type { LogScanner } from '../../../../src/collector/scanner.ts';
import type { TradeRow } from '../../../../src/collector/store/rows.ts';
import { hexToBytes } from '../../../../src/lib/hex.ts';
import { POOL_ID, POOL_MANAGER, V4_SWAP } from './transactions.ts';

/** The smallest possible scanner, over the one pool of the simulated chain. A test checks what the collector passes to it. */
export function createSwapScanner(): LogScanner {
  return {
    key: 'one pool',
    filters: () => [{ addresses: [POOL_MANAGER], topics: [V4_SWAP, POOL_ID] }],
    scan: ({ logs }) => ({
      trades: logs.flatMap((log): TradeRow[] => {
        if (log.address !== POOL_MANAGER || log.topics[1] !== POOL_ID) return [];
        const words = [log.data.slice(2, 66), log.data.slice(66, 130)];
        const [usdc, eurc] = words.map((word) => BigInt.asIntN(256, BigInt(`0x${word}`)));
        return [
          {
            block: log.block,
            logIndex: log.logIndex,
            transactionHash: hexToBytes(log.transactionHash),
            at: log.at,
            pool: hexToBytes(POOL_ID),
            token: hexToBytes(POOL_MANAGER),
            baseE9: magnitude(eurc ?? 0n) * 1000n,
            usdcE9: magnitude(usdc ?? 0n) * 1000n,
            excluded: null,
            side: 'buy',
            pricing: null,
          },
        ];
      }),
    }),
  };
}

const magnitude = (value: bigint) => (value < 0n ? -value : value);
