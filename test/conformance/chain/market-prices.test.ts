import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { marketPrices } from '../../../src/endpoints/market-prices.ts';
import {
  ascending,
  ONE,
  rateOf,
  readChain,
  sum,
  type Trade,
  tradesIn,
  usdcAmount,
} from '../../support/chain/recount.ts';
import { type Service, startService } from '../../support/service/service.ts';

// Two periods of trading, a day of chain time apart. Each figure is recomputed from the node's own receipts.

const SECONDS_OF_TRAFFIC = 6;
const DAY = 86_400;

let network: EmbeddedNetwork;
let service: Service;

beforeAll(async () => {
  network = await startEmbeddedNetwork({ traffic: true, blockTimeMs: 200 });
  await tradeAfter(0);
  const { timestamp } = await network.rpc<{ timestamp: string }>('eth_getBlockByNumber', ['latest', false]);
  await network.rpc('evm_increaseTime', [DAY]);
  await tradeAfter(Number(timestamp) + DAY / 2);
  await network.pauseMining();
  const env = { COLLECTOR_POLL_MS: '250', COLLECTOR_REQUESTS_PER_SECOND: '50' };
  service = await startService(network, { env });
  const head = Number(await network.rpc('eth_blockNumber'));
  const isRead = () => {
    const { collected, backfill } = service.deps.sources.collector.status();
    return collected?.number === head && backfill.share === 1 && backfill.logsShare === 1;
  };
  while (!isRead()) await delay(50);
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

/** Lets the traffic go on, on a busy machine until each pair has a trade that counts after this time, in Unix seconds. */
async function tradeAfter(time: number): Promise<void> {
  const counted = async () =>
    tradesIn(network, await readChain(network)).filter(({ at, usdcE9 }) => at > time && usdcE9 >= ONE);
  do {
    await delay(SECONDS_OF_TRAFFIC * 1000);
  } while (new Set((await counted()).map(({ symbol }) => symbol)).size < 2);
}

interface Pair {
  symbol: string;
  token: string;
  trades1h: number;
  rateUnit: string;
  change24hPercent: string | null;
  change24h: string | null;
}

test('market/prices gives for every pair what a recount of the chain gives', async () => {
  const sources = service.deps.sources;
  const reply = marketPrices.result.parse(await marketPrices.run({}, sources, AbortSignal.timeout(60_000)));
  const pairs = reply.pairs as Pair[];
  expect(pairs.map(({ symbol, token }) => [symbol, token])).toEqual([
    ['EURC', network.eurc],
    ['CALL', network.projectToken],
  ]);
  const blocks = await readChain(network);
  const until = blocks.at(-1)!.at;
  const rate = (trade: Trade | undefined) => (trade ? rateOf(trade.usdcE9, trade.baseE9) : null);
  for (const pair of pairs) {
    // The network's prices stay within the band, so only dust trades are left out.
    const counted = tradesIn(network, blocks).filter(({ symbol, usdcE9 }) => symbol === pair.symbol && usdcE9 >= ONE);
    const hour = counted.filter(({ at }) => at > until - 3600);
    const rates = [...hour].sort((a, b) => ascending(a.usdcE9 * b.baseE9, b.usdcE9 * a.baseE9));
    const [usdc, base] = [sum(hour.map(({ usdcE9 }) => usdcE9)), sum(hour.map(({ baseE9 }) => baseE9))];
    const [last, dayAgo] = [counted.at(-1), counted.findLast(({ at }) => at <= until - DAY)];
    const change = dayAgo ? expect.closeTo((Number(rate(last)) / Number(rate(dayAgo)) - 1) * 100, 3) : null;
    expect(pair.change24h).toBe(pair.change24hPercent);
    const moved = pair.change24hPercent === null ? null : Number(pair.change24hPercent);
    expect({ ...pair, change24hPercent: moved, change24h: moved }).toEqual({
      rateUnit: `USDC/${pair.symbol}`,
      symbol: pair.symbol,
      token: pair.token,
      last: last ? { rate: rate(last), at: last.at } : null,
      ageSeconds: last ? expect.any(Number) : null,
      trades1h: hour.length,
      volumeUsdc1h: usdcAmount(usdc),
      vwap1h: base > 0n ? rateOf(usdc, base) : null,
      low1h: rate(rates[0]),
      high1h: rate(rates.at(-1)),
      complete1h: true,
      change24hPercent: change,
      change24h: change,
    });
  }
  // The most traded pair has trades in both periods.
  expect(pairs[0]).toMatchObject({ last: { rate: expect.any(String) }, change24h: expect.any(String) });
  expect(pairs[0]?.trades1h).toBeGreaterThan(0);
});
