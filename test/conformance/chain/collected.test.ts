import { setTimeout as delay } from 'node:timers/promises';
import { type Hex, keccak256 } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DISTRIBUTOR } from '../../../dev/dex.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import type { AllSources } from '../../../src/catalogue/catalogue.ts';
import { parseParams } from '../../../src/catalogue/params.ts';
import { listedPath } from '../../../src/catalogue/paths.ts';
import type { ChainReads } from '../../../src/collector/store/reads.ts';
import {
  activityOf,
  ascending,
  type Block,
  type Created,
  createdIn,
  decimal,
  e9,
  gwei,
  hourOf,
  kindOf,
  ONE,
  rank,
  rateOf,
  readChain,
  seenIn,
  sum,
  symbolOf,
  type Trade,
  tipsIn,
  tradesIn,
  transfersIn,
  usdcAmount,
  usdcCost,
} from '../../support/chain/recount.ts';
import { type RpcProxy, startRpcProxy } from '../../support/chain/rpc-proxy.ts';
import { type Service, startService } from '../../support/service/service.ts';

// Recomputes every figure of the routes over collected data from the node's own answers, block by block and with other code.

/** Parsed JSON, compared field by field. */
type Reply = ReturnType<typeof JSON.parse>;
type Json = Record<string, never>;

const meanUse = (own: readonly Block[]) => own.reduce((sum, { utilisation }) => sum + utilisation, 0) / own.length;
const total = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);

/** Emits the transfers of native USDC. */
const ARC_SYSTEM = '0xfffffffffffffffffffffffffffffffffffffffe';
const POLL_MS = 250;
/**
 * The 35 operations with which this traffic begins have six trades of either token, all six pools, a trade of dust, a burn, two payouts and five
 * contracts. They take 11 s; few seeds have as much so early. Most of the test's time is this wait.
 */
const SEED = 267_981;
const SECONDS_OF_TRAFFIC = 12;

let network: EmbeddedNetwork;
let proxy: RpcProxy;
let service: Service;
/** Blocks 1 to the head. The chain makes no block while they are compared. */
let blocks: Block[];
let head: Block;

beforeAll(async () => {
  network = await startEmbeddedNetwork({ traffic: true, seed: SEED, blockTimeMs: 200 });
  proxy = await startRpcProxy(network.rpcUrl);
  service = await startService(network, {
    env: {
      RPC_URLS: `${network.rpcUrl},${proxy.url}`,
      COLLECTOR_POLL_MS: String(POLL_MS),
      COLLECTOR_REQUESTS_PER_SECOND: '50',
      PROBE_INTERVAL_MS: '500',
    },
  });
  do {
    await network.resumeMining();
    await delay(SECONDS_OF_TRAFFIC * 1000);
    await network.pauseMining();
    blocks = await readChain(network);
  } while (!hasEverything());
  await untilCollected();
});
afterAll(async () => {
  await service?.stop();
  await proxy?.stop();
  await network?.stop();
});

/** A busy machine may need longer for it. */
function hasEverything(): boolean {
  const kinds = new Set(blocks.flatMap(({ transactions }) => transactions.map(kindOf)));
  const trades = (token: string) => tradesIn(network, blocks).filter(({ symbol }) => symbol === token).length;
  return kinds.size >= 4 && trades('EURC') > 5 && trades('CALL') > 5;
}

/** Takes the last block that was read as the head, and waits until the service has everything up to it. */
async function untilCollected(): Promise<void> {
  head = blocks.at(-1)!;
  await until(async () => {
    const { freshness } = await get('/v1/deploys');
    const { backfill } = service.deps.sources.collector.status();
    const labelled = (await get('/v1/deploys?limit=200')).deploys.every(({ codeBytes }: Json) => codeBytes !== null);
    return freshness.collected === head.number && backfill.share === 1 && backfill.logsShare === 1 && labelled;
  });
}

async function until(holds: () => Promise<boolean>, withinMs = 120_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error('it did not come to that in time');
    await delay(50);
  }
}

async function get(path: string): Promise<Reply> {
  const { status, body } = await service.get(path);
  expect([path, status]).toEqual([path, 200]);
  return JSON.parse(body);
}

/** A buyer's answer: parsed parameters, and a reply that is checked against the published schema. */
async function buy(
  path: string,
  query: Record<string, string> = {},
  sources: AllSources = service.deps.sources,
): Promise<Reply> {
  const endpoint = service.deps.listed.find((candidate) => listedPath(candidate) === `/v1/paid${path}`)!;
  const params = parseParams(endpoint, query);
  return endpoint.result.parse(await endpoint.run(params, sources, AbortSignal.timeout(60_000)));
}

test('the traffic contains every kind of operation', () => {
  const kinds = new Set(blocks.flatMap(({ transactions }) => transactions.map(kindOf)));
  expect(kinds).toEqual(new Set(['deploy', 'nativeTransfer', 'tokenTransfer', 'contractCall']));
  expect(tradesIn(network, blocks).filter(({ symbol }) => symbol === 'EURC').length).toBeGreaterThan(5);
});

test('network names the head, and that every block is collected', async () => {
  const reply = await get('/v1/network');
  expect(reply).toMatchObject({
    head: { number: head.number, hash: head.hash, at: head.at },
    blocksCollected: blocks.length,
    firstCollected: 1,
    lagBlocks: 0,
    lagSeconds: 0,
    freshness: { head: head.number, collected: head.number, lagBlocks: 0, lagSeconds: 0 },
  });
});

test('activity counts the blocks, transactions and operations of each hour', async () => {
  const { hours, freshness } = await get('/v1/activity');
  expect(hours.map(({ complete: _, ...hour }: Json) => hour)).toEqual(activityOf(blocks));
  expect(freshness.collected).toBe(head.number);
});

test('deploys lists every contract with the length of its code and its symbol, and counts them by the hour', async () => {
  const expected = createdIn(blocks);
  const { deploys, hours } = await buy('/deploys/history', { limit: '1000' });
  expect(deploys).toHaveLength(expected.length);
  const places = ({ address, deployer, transaction, block, at }: Created) => ({
    address,
    deployer,
    transaction,
    block,
    at,
  });
  const byHash = (a: Created, b: Created) => ascending(b.block, a.block) || (a.transaction < b.transaction ? -1 : 1);
  expect(deploys.map(places)).toEqual(expected.map(places).sort(byHash));
  for (const { address, codeBytes, label } of deploys) {
    const code = await network.rpc<Hex>('eth_getCode', [address, 'latest']);
    expect(codeBytes).toBe(code.length / 2 - 1);
    const symbol = await symbolOf(network, address);
    if (symbol === null) expect(label ?? '').not.toContain('token');
    else expect(label).toContain(`token "${symbol}"`);
  }
  const byHour = Map.groupBy(expected, ({ at }) => hourOf(at));
  const counted = hours.filter((hour: { deploys: number }) => hour.deploys > 0);
  expect(counted).toEqual(
    [...byHour].map(([at, own]) => ({
      at,
      deploys: own.length,
      deployers: new Set(own.map((entry) => entry.deployer)).size,
    })),
  );
  expect(deploys.slice(0, 7)).toMatchObject((await get('/v1/deploys?limit=7')).deploys);
});

test('deploys have the hash of their code, how many others have the same, and their kinds; pages and filters lose none', async () => {
  const { deploys, nextCursor, completeSince } = await buy('/deploys/history', { limit: '1000' });
  expect([nextCursor, completeSince.block]).toEqual([null, 1]);
  const hashes = new Map<string, Hex>();
  const symbols = new Map<string, string | null>();
  for (const { address } of createdIn(blocks)) {
    hashes.set(address, keccak256(await network.rpc<Hex>('eth_getCode', [address, 'latest'])));
    symbols.set(address, await symbolOf(network, address));
  }
  const alike = Map.groupBy(hashes.values(), (hash) => hash);
  for (const { address, codeHash, sameCodeOthers, kinds, labelState, label } of deploys) {
    expect(codeHash).toBe(hashes.get(address));
    expect(sameCodeOthers).toBe(alike.get(codeHash)!.length - 1);
    // The network has no proxies.
    expect(kinds).toEqual(symbols.get(address) === null ? [] : ['token']);
    expect(labelState === 'known').toBe(label !== null);
  }
  const walk = async (filters: Record<string, string>) => {
    const found: Reply[] = [];
    for (let cursor: string | null = null, pages = 0; pages === 0 || cursor !== null; pages++) {
      const page = await buy('/deploys/history', { limit: '3', ...filters, ...(cursor !== null && { cursor }) });
      found.push(...page.deploys);
      cursor = page.nextCursor;
    }
    return found;
  };
  expect(await walk({})).toEqual(deploys);
  for (const kind of ['token', 'other'] as const) {
    const expected = deploys.filter(({ kinds }: Reply) => kinds.includes('token') === (kind === 'token'));
    expect(await walk({ kind })).toEqual(expected);
  }
  const busiest = deploys[0].deployer;
  expect(await walk({ deployer: busiest })).toEqual(deploys.filter(({ deployer }: Json) => deployer === busiest));
  expect(await walk({ kind: 'proxy' })).toEqual([]);
});

describe('fees', () => {
  test('give the base fee of the head, the lowest fee and the fees of each hour', async () => {
    const reply = await get('/v1/fees');
    expect(reply.baseFee).toEqual({ wei: String(head.baseFee), gwei: gwei(head.baseFee), block: head.number });
    const fees = blocks.map(({ baseFee }) => baseFee).sort(ascending);
    expect(reply.floorGwei).toBe(gwei(fees[0]!));
    // The chain announces it in the head's header, and does not go below its floor.
    expect(reply.nextBaseFee).toMatchObject({ exact: true });
    expect(BigInt(reply.nextBaseFee.wei)).toBeGreaterThanOrEqual(fees[0]!);
    const gas = BigInt(reply.transferGas.erc20);
    const tips = tipsIn(blocks);
    const [slow, normal, fast] = [10, 50, 90].map((percent) => rank(tips, percent));
    const { transactions, ...speeds } = reply.suggested;
    expect(transactions).toBe(tips.length);
    for (const [speed, tip, headroom] of [
      ['slow', slow, 125n],
      ['normal', normal, 150n],
      ['fast', fast, 200n],
    ] as const) {
      const { maxFeePerGas, maxPriorityFeePerGas } = speeds[speed];
      // Three digits: an error of half a percent.
      expect(Math.abs(Number(maxPriorityFeePerGas.wei) - Number(tip))).toBeLessThanOrEqual(Number(tip) * 0.0051);
      expect(BigInt(maxFeePerGas.wei) - BigInt(maxPriorityFeePerGas.wei)).toBe(
        (BigInt(reply.nextBaseFee.wei) * headroom) / 100n,
      );
    }
    const withTip = head.baseFee + BigInt(speeds.normal.maxPriorityFeePerGas.wei);
    expect(reply.transferCostUsdc).toEqual({
      native: usdcCost(21_000n * head.baseFee),
      erc20: usdcCost(gas * head.baseFee),
      nativeWithTip: usdcCost(21_000n * withTip),
      erc20WithTip: usdcCost(gas * withTip),
    });
    expect(reply.aboveFloorGwei).toBe(gwei(head.baseFee - fees[0]!));
    expect(Number(reply.aboveFloorPercent)).toBeCloseTo((Number(head.baseFee) / Number(fees[0]) - 1) * 100, 3);
    const byHour = Map.groupBy(blocks, ({ at }) => hourOf(at));
    expect(reply.hours).toEqual(
      [...byHour].map(([at, own]) => {
        const wei = own.map(({ baseFee }) => baseFee).sort(ascending);
        const sum = wei.reduce((total, fee) => total + fee, 0n);
        const use = own.reduce((total, { utilisation }) => total + utilisation, 0) / own.length;
        const mean = (2n * sum + BigInt(wei.length)) / (2n * BigInt(wei.length));
        return {
          at,
          minGwei: gwei(wei[0]!),
          avgGwei: gwei(mean),
          maxGwei: gwei(wei.at(-1)!),
          utilisationShare: expect.closeTo(use, 5),
          utilisation: expect.closeTo(use, 5),
        };
      }),
    );
  });

  test('forecast the band, the trend and the cost of each kind of operation from the blocks', async () => {
    const reply = await buy('/fees/forecast');
    const fees = blocks.map(({ baseFee }) => baseFee).sort(ascending);
    expect(reply.band24h).toEqual({
      minGwei: gwei(fees[0]!),
      p5Gwei: gwei(rank(fees, 5)),
      medianGwei: gwei(rank(fees, 50)),
      p95Gwei: gwei(rank(fees, 95)),
      maxGwei: gwei(fees.at(-1)!),
      blocks: fees.length,
    });
    expect(reply.now.wei).toBe(String(head.baseFee));
    const steps = Map.groupBy(blocks, ({ at }) => Math.floor(at / 300) * 300);
    expect(reply.utilisationTrend.points).toEqual(
      [...steps].map(([at, own]) => ({
        at,
        utilisationShare: expect.closeTo(meanUse(own), 5),
        utilisation: expect.closeTo(meanUse(own), 5),
      })),
    );
    const taken = blocks.flatMap(({ transactions, receipts }) =>
      receipts.map((receipt, index) => ({ kind: kindOf(transactions[index]!), receipt })),
    );
    for (const { type, gas, p50Usdc, p95Usdc, samples } of reply.operations) {
      const own = taken
        .filter(({ kind, receipt }) => kind === type && receipt.status === '0x1')
        .map(({ receipt }) => receipt);
      const used = own.map(({ gasUsed }) => Number(gasUsed)).sort(ascending);
      const paid = own
        .map(({ gasUsed, effectiveGasPrice }) => Number(BigInt(gasUsed) * BigInt(effectiveGasPrice)) / 1e18)
        .sort(ascending);
      expect(samples).toBe(own.length);
      // Three digits: an error of half a percent.
      expect(Math.abs(gas / rank(used, 50) - 1)).toBeLessThan(0.0051);
      // Three digits, then up to the sixth decimal.
      for (const [shown, percent] of [
        [p50Usdc, 50],
        [p95Usdc, 95],
      ] as const) {
        const exact = rank(paid, percent);
        expect(Math.abs(Number(shown) - exact)).toBeLessThan(exact * 0.0051 + 1e-6);
      }
    }
  });
});

describe('chain/tx', () => {
  /** Some swaps of every pool. */
  const sample = () =>
    [...Map.groupBy(tradesIn(network, blocks), ({ pool }) => pool).values()].flatMap((own) => own.slice(-3));

  test.each([
    ['as collected', (reads: ChainReads) => reads],
    [
      'of pools that are not collected, by the transfers alone',
      (reads: ChainReads) => ({ ...reads, pool: () => null }),
    ],
  ])('names both tokens and amounts of swaps, %s', async (how, adapt) => {
    const { sources } = service.deps;
    const usdc = network.usdc.toLowerCase();
    expect(new Set(sample().map(({ venue }) => venue)).size).toBeGreaterThan(2);
    for (const trade of sample()) {
      // Without the pool's row, native USDC is known by the system's log, which only Arc's own nodes write.
      if (how !== 'as collected' && trade.pool === network.pools!.v4NativePoolId) continue;
      const { swaps } = await buy(
        '/chain/tx',
        { hash: trade.transaction },
        { ...sources, reads: adapt(sources.reads) },
      );
      expect(swaps).toHaveLength(1);
      const [{ pool, contract, venue, sold, bought }] = swaps;
      expect([pool, contract]).toEqual([trade.pool, trade.address]);
      expect(venue).toBe(how === 'as collected' ? trade.venue : null);
      const [money, base] = trade.side === 'buy' ? [sold, bought] : [bought, sold];
      expect([money.symbol, base.symbol]).toEqual(['USDC', trade.symbol]);
      expect(money.decimals === 18 ? ARC_SYSTEM : usdc).toBe(money.token);
      for (const [side, exact] of [
        [money, trade.usdcE9],
        [base, trade.baseE9],
      ] as const) {
        expect(e9(BigInt(side.amountRaw), side.decimals)).toBe(exact);
        expect(side.amount).toBe(decimal(BigInt(side.amountRaw), side.decimals));
      }
    }
  });
});

describe('fx', () => {
  test.each(['EURC', 'CALL'])(
    '%s has the last rate, the window, the sizes and the venues of the chain’s own trades',
    async (symbol) => {
      const all = tradesIn(network, blocks).filter((trade) => trade.symbol === symbol);
      // The network's prices stay within the band, so only dust trades are left out.
      const counted = all.filter(({ usdcE9 }) => usdcE9 >= ONE);
      const [usdc, base] = [sum(counted.map(({ usdcE9 }) => usdcE9)), sum(counted.map(({ baseE9 }) => baseE9))];
      const reply = await buy('/fx/execution', { symbol, window: '1440' });
      const last = counted.at(-1)!;
      // Compared without rounding. So a rate's position does not depend on its eighth decimal.
      const rates = [...counted].sort((a, b) => ascending(a.usdcE9 * b.baseE9, b.usdcE9 * a.baseE9));
      const rate = (trade: Trade) => rateOf(trade.usdcE9, trade.baseE9);
      expect(reply.last).toEqual({ rate: rate(last), at: last.at, block: last.block, transaction: last.transaction });
      expect(reply.window).toEqual({
        minutes: 1440,
        trades: counted.length,
        excluded: all.length - counted.length,
        complete: true,
        volumeBase: decimal(base, 9),
        volumeUsdc: usdcAmount(usdc),
        vwap: rateOf(usdc, base),
        low: rate(rates[0]!),
        high: rate(rates.at(-1)!),
      });
      const free = await get(`/v1/fx?symbol=${symbol}&window=1440`);
      expect(free).toMatchObject({ symbol, last: reply.last, window: reply.window });

      const vwap = Number(usdc) / Number(base);
      for (const size of reply.sizes) {
        const { fromUsdc, toUsdc, trades: count, slippageBps, deviationFromVwapBps, vwap: own } = size;
        const within = counted.filter(
          ({ usdcE9 }) => usdcE9 >= BigInt(fromUsdc) * ONE && (toUsdc === null || usdcE9 < BigInt(toUsdc) * ONE),
        );
        expect(count).toBe(within.length);
        for (const [side, { trades: measured, costBps }] of [
          ['buy', size.buys],
          ['sell', size.sells],
        ] as const) {
          const seen = within.filter((trade) => trade.side === side && trade.before !== null);
          const atBefore = seen.map(({ baseE9, before }) => Number(baseE9) * before!);
          const costs = seen.map(
            ({ usdcE9 }, index) => (Number(usdcE9) - atBefore[index]!) * (side === 'buy' ? 1 : -1),
          );
          expect(measured).toBe(seen.length);
          if (seen.length === 0) expect(costBps).toBeNull();
          else expect(costBps).toBeCloseTo((total(costs) / total(atBefore)) * 10_000, 1);
          // Every pool takes a fee, so no side of any size trades for less than it.
          if (seen.length > 0) expect(costBps).toBeGreaterThan(4);
        }
        expect(deviationFromVwapBps).toBe(slippageBps);
        if (within.length === 0) continue;
        expect(own).toBe(rateOf(sum(within.map(({ usdcE9 }) => usdcE9)), sum(within.map(({ baseE9 }) => baseE9))));
        const fair = within.map(({ baseE9 }) => Number(baseE9) * vwap);
        const off = within.reduce((total, { usdcE9 }, index) => total + Math.abs(Number(usdcE9) - fair[index]!), 0);
        expect(slippageBps).toBeCloseTo((off / fair.reduce((total, value) => total + value, 0)) * 10_000, 1);
      }
      const venues = Map.groupBy(counted, ({ venue, address }) => `${venue} ${address}`);
      expect(reply.venues).toHaveLength(venues.size);
      for (const { name, address, trades: count, volumeUsdc, share, volumeShare } of reply.venues) {
        const within = venues.get(`${name} ${address}`)!;
        const volume = sum(within.map(({ usdcE9 }) => usdcE9));
        expect({ count, volumeUsdc }).toEqual({ count: within.length, volumeUsdc: usdcAmount(volume) });
        expect(share).toBeCloseTo(Number(volume) / Number(usdc), 3);
        expect(volumeShare).toBe(share);
      }
      const pools = Map.groupBy(counted, ({ pool }) => pool);
      expect(reply.pools.map(({ id }: { id: string }) => id).sort()).toEqual([...pools.keys()].sort());
      for (const { id, venue, trades: count, volumeUsdc, state } of reply.pools) {
        const within = pools.get(id)!;
        const newest = all.findLast(({ pool }) => pool === id)!;
        expect({ venue, count }).toEqual({ venue: within[0]!.venue, count: within.length });
        expect(volumeUsdc).toBe(usdcAmount(sum(within.map(({ usdcE9 }) => usdcE9))));
        expect(Number(state.rate) / newest.after).toBeCloseTo(1, 6);
        expect(state.at).toBe(newest.at);
        expect(Number(state.depth10BpsUsdc) / (newest.reserve * (Math.sqrt(1.001) - 1))).toBeCloseTo(1, 5);
      }
    },
  );

  test('answers 400 with the list of watched symbols for a symbol that is not watched', async () => {
    const { status, body } = await service.get('/v1/fx?symbol=DOGE');
    expect([status, JSON.parse(body).errors]).toEqual([
      400,
      [{ path: 'symbol', message: 'not watched; one of EURC, CALL' }],
    ]);
  });
});

test('token sums the burns and payouts, and shows the last price', async () => {
  const moved = transfersIn(blocks);
  const burns = moved.filter(({ address, to }) => address === network.projectToken && to.endsWith('dead'));
  const payouts = moved.filter(({ address, from }) => address === network.usdc && from === DISTRIBUTOR);
  const burned = decimal(sum(burns.map(({ amount }) => amount)), 18);
  const paid = decimal(sum(payouts.map(({ amount }) => amount)), 6);
  const last = tradesIn(network, blocks).findLast(({ symbol, usdcE9 }) => symbol === 'CALL' && usdcE9 >= ONE);
  // The collector reads from the chain's first block on.
  const since = { block: 1, at: blocks[0]!.at };
  expect(await get('/v1/token')).toMatchObject({
    token: { address: network.projectToken, symbol: 'CALL', decimals: 18 },
    burned: { total: burned, last24h: burned, unit: 'CALL', events: burns.length, since },
    payouts: { totalUsdc: paid, last24hUsdc: paid, recipients: new Set(payouts.map(({ to }) => to)).size, since },
    rateUnit: 'USDC/CALL',
    price: last ? { rate: rateOf(last.usdcE9, last.baseE9), block: last.block } : null,
    note: null,
  });
});

describe('accounts', () => {
  const ZERO = `0x${'0'.repeat(40)}`;
  const movesOf = (token: string) =>
    transfersIn(blocks).filter(({ address, amount }) => address === token && amount > 0n);
  const rawBalance = async (token: string, owner: string) =>
    String(
      BigInt(
        await network.rpc<Hex>('eth_call', [
          { to: token, data: `0x70a08231${owner.slice(2).padStart(64, '0')}` },
          'latest',
        ]),
      ),
    );

  test('chain/wallet gives an account’s balances, first and last transaction, and who created it', async () => {
    const seen = seenIn(blocks);
    const created = createdIn(blocks);
    const silent = `0x${'5e'.repeat(20)}`;
    // Those with most transactions, those with one, two contracts that the traffic created, and one without any.
    const busy = [...seen].sort(([, a], [, b]) => b.length - a.length).map(([account]) => account);
    const asked = new Set([
      ...busy.slice(0, 6),
      ...busy.slice(-4),
      ...created.slice(-2).map(({ address }) => address),
      silent,
    ]);
    for (const address of asked) {
      const reply = await buy('/chain/wallet', { address });
      const places = seen.get(address) ?? [];
      expect(reply.activity).toEqual({
        first: places[0] ?? null,
        last: places.at(-1) ?? null,
        complete: true,
        since: { block: 1, at: blocks[0]!.at },
        until: { block: head.number, at: head.at },
      });
      expect(reply.balances.map(({ symbol }: Json) => symbol)).toEqual(['USDC', 'CALL', 'EURC']);
      for (const { address: token, balanceRaw, lastMovedAt } of reply.balances) {
        expect(balanceRaw).toBe(await rawBalance(token, address));
        const moves = movesOf(token).filter(({ from, to }) => from === address || to === address);
        expect(lastMovedAt).toBe(token === network.usdc ? null : (moves.at(-1)?.at ?? null));
      }
      const code = await network.rpc<Hex>('eth_getCode', [address, 'latest']);
      const own = created.findLast((entry) => entry.address === address);
      expect(reply).toMatchObject({
        isContract: code !== '0x',
        nonce: reply.transactionsSent,
        codeBytes: code.length / 2 - 1,
      });
      expect(reply.creation).toEqual(
        own ? { creator: own.deployer, transaction: own.transaction, block: own.block, at: own.at } : null,
      );
      if (own) expect(reply.label ?? '').toContain((await symbolOf(network, own.address)) ?? '');
    }
    expect((await buy('/chain/wallet', { address: silent })).activity).toMatchObject({ first: null, last: null });
  });

  test.each(['EURC', 'CALL'])('chain/token gives the market of %s, and the accounts that moved it', async (symbol) => {
    const address = symbol === 'EURC' ? network.eurc : network.projectToken;
    const reply = await buy('/chain/token', { address });
    const execution = await buy('/fx/execution', { symbol, window: '1440' });
    // The figures of fx/execution are compared with the chain’s own trades above.
    const { last, window, pools } = execution;
    expect(reply.market).toMatchObject({ symbol, last, window, pools, poolsTruncated: false, change24hPercent: null });
    const accounts = new Set(movesOf(address).flatMap(({ from, to }) => [from, to]));
    accounts.delete(ZERO);
    expect(accounts.size).toBeGreaterThan(2);
    expect(reply.holdersSeen).toEqual({
      accounts: accounts.size,
      complete: true,
      since: { block: 1, at: blocks[0]!.at },
      until: { block: head.number, at: head.at },
    });
    const own = createdIn(blocks).findLast((entry) => entry.address === address);
    expect(reply.creation?.creator ?? null).toBe(own?.deployer ?? null);
  });
});

test('rpc names both providers, and shows that one fails', async () => {
  let endpoints: Reply[] = [];
  await until(async () => {
    ({ endpoints } = await get('/v1/rpc'));
    return endpoints.every(({ ok, headLagBlocks }) => ok && headLagBlocks === 0);
  });
  expect(endpoints).toMatchObject([network.rpcUrl, proxy.url].map((url) => ({ name: new URL(url).host, url })));
  for (const { latencyMs } of endpoints) expect(latencyMs).toBeGreaterThan(0);
  proxy.fault({ eth_blockNumber: 'refuse' });
  await until(async () => (await get('/v1/rpc')).endpoints[1].ok === false);
  proxy.fault({});
  const report = (await buy('/rpc/health')).endpoints;
  expect(report[0]).toMatchObject({ errors: { rpcError: 0 } });
  expect(report[1].errors.rpcError).toBeGreaterThan(0);
  const failed = Object.values(report[1].errors as Record<string, number>).reduce((sum, count) => sum + count, 0);
  expect(report[1].errorShare).toBeCloseTo(failed / report[1].probes, 3);
  expect(report[1].errorRate).toBe(report[1].errorShare);
});

test('a free answer keeps its bytes and ETag until the collector writes, and changes with the next block', async () => {
  // The probe writes too. Between two of its rounds there is no write.
  await until(async () => {
    const first = await service.get('/v1/activity');
    const again = await service.get('/v1/activity', { headers: { 'if-none-match': String(first.headers.etag) } });
    return again.status === 304;
  });
  const before = await service.get('/v1/activity');
  const { number } = head;
  await network.mine();
  try {
    await until(async () => (await get('/v1/activity')).freshness.collected === number + 1);
    expect((await service.get('/v1/activity')).headers.etag).not.toBe(before.headers.etag);
  } finally {
    // The other tests compare the service with all blocks.
    blocks = await readChain(network);
    await untilCollected();
  }
});
