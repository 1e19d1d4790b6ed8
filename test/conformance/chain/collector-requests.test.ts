import { afterEach, describe, expect, test } from 'vitest';
import type { DescribeCode } from '../../../src/collector/context.ts';
import { createSimChain } from '../../support/chain/arc-simulator/chain.ts';
import {
  type Collecting,
  type CollectingOptions,
  freshFile,
  startCollecting,
} from '../../support/chain/arc-simulator/collecting.ts';
import { type SimNode, type SimNodeOptions, startSimNode } from '../../support/chain/arc-simulator/node.ts';
import { createSwapScanner } from '../../support/chain/arc-simulator/swap-scanner.ts';
import { createVirtualClock } from '../../support/chain/arc-simulator/virtual-clock.ts';

// The collector's requests, as the simulator counts them, under the limits of Arc's public endpoint.

const GENESIS_MS = 1_795_000_000_000;
/** The window of past blocks. Each of its blocks becomes a row, and the time for it is in proportion: 60 s for a day. */
const HOURS = process.env.SLOW ? 24 : 6;
const WINDOW_BLOCKS = HOURS * 7200;
/** The limits that were measured at the public endpoint. */
const PUBLIC_LIMIT = { perSecond: 2, burst: 4 };

const open: (Collecting | SimNode)[] = [];
afterEach(async () => {
  for (const part of open.splice(0)) await ('kill' in part ? part.kill() : part.stop());
});

async function begin(
  startBlock: number,
  transactions: number,
  { describeCode, limits, ...more }: Partial<SimNodeOptions> & Pick<CollectingOptions, 'describeCode' | 'limits'> = {},
) {
  const clock = createVirtualClock(GENESIS_MS + startBlock * 500, 2);
  const chain = createSimChain({ seed: 'requests', genesisMs: GENESIS_MS, transactions });
  const node = await startSimNode({ chain, nowMs: clock.nowMs, limit: PUBLIC_LIMIT, ...more });
  const collecting = startCollecting({
    urls: [node.url],
    clock,
    file: freshFile(),
    scanners: [createSwapScanner()],
    ...(describeCode && { describeCode }),
    ...(limits && { limits }),
    timeoutMs: 60_000,
  });
  open.push(collecting, node);
  return { clock, chain, node, collecting, startMs: clock.nowMs() };
}

/** The most requests within any `windowMs`. */
function busiest(timesMs: readonly number[], windowMs: number): number {
  return Math.max(...timesMs.map((from) => timesMs.filter((at) => at >= from && at < from + windowMs).length));
}

describe('a cold start on a chain with a history', () => {
  test(`has the fees of ${HOURS} hours within ${2.5 * HOURS} s, and stays below the limit`, async () => {
    const limits = { backfillHours: HOURS };
    const { clock, node, collecting, startMs } = await begin(WINDOW_BLOCKS + 5000, 0, { limits });
    const { collector, db } = collecting;
    await clock.until(startMs + 10_000);
    // The newest hours come first.
    const stored = db.prepare('SELECT count(*) AS blocks, max(at) - min(at) AS seconds FROM blocks').get();
    expect((stored as { seconds: number }).seconds).toBeGreaterThan(3600);
    await clock.until(startMs + 2500 * HOURS);
    const { backfill, head } = collector.status();
    expect(backfill.feesShare).toBe(1);
    const fees = db.prepare('SELECT count(*) AS blocks FROM blocks WHERE number > ?').get(head!.number - WINDOW_BLOCKS);
    expect((fees as { blocks: number }).blocks).toBeGreaterThanOrEqual(WINDOW_BLOCKS - 6);
    expect(node.refused()).toBe(0);
    expect(busiest(node.requestsMs, 10_000)).toBeLessThan(20);
  });

  test('the window fills in the background while the head stays current', async () => {
    const { clock, node, collecting, startMs } = await begin(20_000, 0);
    const shares: number[] = [];
    for (let second = 40; second <= 160; second += 40) {
      await clock.until(startMs + second * 1000);
      const { head, collected, backfill } = collecting.collector.status();
      expect(head!.number - collected!.number).toBeLessThanOrEqual(4);
      shares.push(backfill.share);
    }
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
    expect(new Set(shares).size).toBe(shares.length);
    const { blocksPerSecond, secondsLeft } = collecting.collector.status().backfill;
    expect(blocksPerSecond).toBeGreaterThan(10);
    expect(secondsLeft).toBeGreaterThan(0);
    expect(node.requestsMs.length / 160).toBeLessThan(2);
  });
});

describe('following 2 blocks a second', () => {
  const SECONDS = process.env.SLOW ? 300 : 90;

  test.each([
    ['with eth_getBlockReceipts', true],
    ['without it', false],
  ])('%s: under 2 HTTP requests a second in total, and never far behind', async (_, hasBlockReceipts) => {
    const { clock, chain, node, collecting, startMs } = await begin(200, 8, { hasBlockReceipts });
    for (let second = 30; second <= SECONDS; second += 5) {
      await clock.until(startMs + second * 1000);
      const { collected } = collecting.collector.status();
      expect(chain.headAt(clock.nowMs()) - collected!.number).toBeLessThanOrEqual(hasBlockReceipts ? 5 : 8);
    }
    expect(node.requestsMs.length / SECONDS).toBeLessThan(2);
    expect(busiest(node.requestsMs, 10_000)).toBeLessThan(20);
    expect(node.refused()).toBe(0);
    expect(collecting.collector.status()).toMatchObject({
      backfill: { share: 1 },
      counters: { failures: 0, reorgs: 0 },
    });
    // Every request is counted, except the one for the chain id.
    expect(collecting.collector.status().counters.requests).toBe(node.requestsMs.length - 1);
  });

  test('the code of new contracts is read at once when no block is missing', async () => {
    const { clock, collecting, startMs } = await begin(200, 8);
    await clock.until(startMs + 60_000);
    expect(collecting.collector.status().backfill.share).toBe(1);
    const waiting = collecting.db.prepare('SELECT count(*) FROM deploys WHERE code_bytes IS NULL AND at <= ?').pluck();
    let late = 0;
    for (let second = 60; second < 160; second += 1) {
      await clock.until(startMs + second * 1000);
      if ((waiting.get(Math.floor(clock.nowMs() / 1000) - 4) as number) > 0) late += 1;
    }
    const { created } = collecting.db.prepare('SELECT count(*) AS created FROM deploys').get() as { created: number };
    expect(created).toBeGreaterThan(20);
    expect(late).toBe(0);
  });

  test('contracts without a symbol are looked at again after a minute, fifty at most, and not twice in half a minute', async () => {
    const looks: { atMs: number; contracts: number }[] = [];
    let isNamed = false;
    const describeCode: DescribeCode = async (deploys) => {
      if (deploys.every(({ code }) => code === null)) looks.push({ atMs: clock.nowMs(), contracts: deploys.length });
      return deploys.map(() => (isNamed ? { label: 'token "LATE"', kinds: 1 } : { label: null, kinds: 0 }));
    };
    const { clock, collecting, startMs } = await begin(200, 8, { describeCode });
    await clock.until(startMs + 50_000);
    isNamed = true;
    await clock.until(startMs + 250_000);
    expect(looks.length).toBeGreaterThan(2);
    expect(Math.max(...looks.map(({ contracts }) => contracts))).toBeLessThanOrEqual(50);
    const gaps = looks.slice(1).map(({ atMs }, at) => atMs - looks[at]!.atMs);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(30_000);
    const { total, named } = collecting.db
      .prepare(
        'SELECT count(*) AS total, count(label) AS named FROM deploys WHERE at BETWEEN ? AND ? AND code_bytes > 0',
      )
      .get(startMs / 1000, startMs / 1000 + 50) as { total: number; named: number };
    expect(total).toBeGreaterThan(5);
    expect(named).toBe(total);
  });

  test('no batch, log span or fee span is longer than a node accepts', async () => {
    const { clock, node, collecting, startMs } = await begin(20_000, 0);
    const batches: number[] = [];
    const spans: number[] = [];
    const fees: number[] = [];
    node.fault = (calls) => {
      batches.push(calls.length);
      for (const { method, params } of calls) {
        if (method === 'eth_feeHistory') fees.push(Number(params[0]));
        if (method !== 'eth_getLogs') continue;
        const [{ fromBlock, toBlock }] = params as [{ fromBlock: string; toBlock: string }];
        spans.push(Number(toBlock) - Number(fromBlock) + 1);
      }
      return null;
    };
    await clock.until(startMs + 60_000);
    expect(collecting.collector.status().backfill).toMatchObject({ feesShare: 1, logsShare: 1 });
    expect(Math.max(...batches)).toBeLessThanOrEqual(100);
    expect(Math.max(...spans)).toBe(9999);
    expect(Math.max(...fees)).toBe(1024);
  });

  test('a refused fee history is asked for again after a minute, once a minute while it is refused', async () => {
    const { clock, node, collecting, startMs } = await begin(20_000, 0, { limits: { backfillHours: 1 } });
    node.refusing.add('eth_feeHistory');
    const askedMs: number[] = [];
    node.fault = (calls) => {
      if (calls.some(({ method }) => method === 'eth_feeHistory')) askedMs.push(clock.nowMs() - startMs);
      return null;
    };
    await clock.until(startMs + 150_000);
    expect(askedMs.map((ms) => Math.floor(ms / 60_000))).toEqual([0, 1, 2]);
    expect(collecting.collector.status().backfill.feesShare).toBeLessThan(1);
    node.refusing.clear();
    await clock.until(startMs + 230_000);
    expect(askedMs.length).toBeGreaterThan(3);
    expect(collecting.collector.status().backfill.feesShare).toBe(1);
  });
});
