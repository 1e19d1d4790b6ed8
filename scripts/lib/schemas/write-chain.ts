import type { ProbeWrites } from '../../../src/collector/store/probes.ts';
import type { ChainWrites } from '../../../src/collector/store/writes.ts';
import { AT, contract, hashOf, payer } from './rows.ts';

/** Unix seconds of the first block: a whole hour. */
export const FROM = AT / 1000;
const GWEI = 1_000_000_000n;
export const POOL = hashOf('pool').subarray(0, 20);
export const TOKEN = hashOf('token').subarray(0, 20);
/** Blocks of two hours that were read whole, and below them some of which only the fees are known. */
export const WHOLE = { from: 1000, to: 1009 };
export const FEES = { from: 990, to: 999 };

/** Writes rows of every kind that the collector keeps: whole blocks, fees, deploys, pools, trades, token events, costs, probes and a rolled-up hour. */
export function writeChain(writes: ChainWrites, probes: ProbeWrites): void {
  const fees = span(FEES).map((number) => ({
    number,
    at: FROM - 5000 + number,
    baseFee: 21n * GWEI,
    utilisation: 0.25,
  }));
  writes.storeFees(FEES, fees);
  writes.storeBlocks({
    blocks: span(WHOLE).map((number) => blockOf(number)),
    deploys: [{ block: 1003, at: FROM + 3, address: TOKEN, deployer: payer, transactionHash: hashOf('deploy') }],
    costs: [
      { kind: 'tokenTransfer', at: FROM + 2, gasUsed: 65_000, effectiveGasPrice: 22n * GWEI, baseFee: 21n * GWEI },
    ],
    scan: null,
  });
  writes.storeLogs(WHOLE, () => ({
    pools: [
      { id: POOL, venue: 'uniswap', kind: 'v2', emitter: POOL, token: TOKEN, tokenFirst: true, tokenDecimals: 18 },
    ].map((pool) => ({ ...pool, kind: 'v2', usdcDecimals: 6, foundBlock: 1002 })),
    trades: [1005, 1007].map((block) => ({
      block,
      logIndex: 1,
      transactionHash: hashOf(`trade ${block}`),
      at: FROM + block - 1000,
      pool: POOL,
      token: TOKEN,
      baseE9: 3_000_000_000n,
      usdcE9: 6_000_000_000n,
      excluded: null,
      side: 'buy',
      pricing: { priceBefore: null, priceAfter: 2 + block / 10_000, usdcReserve: 50_000 },
    })),
    tokenEvents: [
      ...[{ block: 1006, logIndex: 2, transactionHash: hashOf('burn'), at: FROM + 6, kind: 'burn' as const }],
    ].map((event) => ({ ...event, account: contract, amount: 2n ** 70n })),
  }));
  const code = { codeBytes: 512, codeHash: hashOf('code'), label: 'token' };
  // Stores up to schema 4 leave out the kinds and the time of the next look.
  writes.storeCode([{ block: 1003, transactionHash: hashOf('deploy'), ...code, kinds: 1, lookAt: null }]);
  writes.storeHead({
    number: WHOLE.to,
    hash: `0x${hashOf('block 1009').toString('hex')}`,
    at: FROM + 9,
    advancedMs: AT + 9000,
  });
  const answered = { endpoint: 'rpc.example', ok: true, latencyMs: 40, head: WHOLE.to, error: null };
  const silent = { endpoint: 'slow.example', ok: false, latencyMs: null, head: null, error: 'timeout' } as const;
  probes.record(AT + 9000, [answered, silent], 0);
  // The hour of the fees has ended, and is rolled up.
  if (!writes.rollUpHour(FROM)) throw new Error('no hour was rolled up');
}

const span = ({ from, to }: { from: number; to: number }): number[] =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at);

function blockOf(number: number) {
  return {
    number,
    at: FROM + number - 1000,
    hash: hashOf(`block ${number}`),
    parentHash: hashOf(`block ${number - 1}`),
    baseFee: 20n * GWEI + BigInt(number),
    nextBaseFee: 20n * GWEI,
    utilisation: 0.5,
    gasLimit: 30_000_000n,
    transactions: 4,
    deploys: 1,
    nativeTransfers: 1,
    tokenTransfers: 1,
    contractCalls: 1,
  };
}
