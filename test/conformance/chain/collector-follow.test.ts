import { afterEach, describe, expect, test } from 'vitest';
import type { LogScanner } from '../../../src/collector/scanner.ts';
import { createSimChain } from '../../support/chain/arc-simulator/chain.ts';
import {
  type Collecting,
  type CollectingOptions,
  freshFile,
  startCollecting,
} from '../../support/chain/arc-simulator/collecting.ts';
import type { SimFault } from '../../support/chain/arc-simulator/faults.ts';
import { type SimNode, startSimNode } from '../../support/chain/arc-simulator/node.ts';
import { accountProblems, expectedTables, storedTables } from '../../support/chain/arc-simulator/oracle.ts';
import { createSwapScanner } from '../../support/chain/arc-simulator/swap-scanner.ts';
import { createVirtualClock } from '../../support/chain/arc-simulator/virtual-clock.ts';

// Each case of follow.ts separately; test/fault/collector.test.ts mixes them.

const GENESIS_MS = 1_795_000_000_000;
const LIMITS = { requestsPerSecond: 5, backfillHours: 1 };
const open: (Collecting | SimNode)[] = [];
afterEach(async () => {
  for (const part of open.splice(0).toReversed()) await ('kill' in part ? part.kill() : part.stop());
});

async function begin(
  options: { startBlock?: number; nodes?: number; scanners?: LogScanner[]; transactions?: number } = {},
) {
  const { startBlock = 100, nodes: count = 1, scanners = [createSwapScanner()], transactions = 4 } = options;
  const clock = createVirtualClock(GENESIS_MS + startBlock * 500, 2);
  const chain = createSimChain({ seed: 'follow', genesisMs: GENESIS_MS, transactions });
  const foreign = createSimChain({ seed: 'foreign', genesisMs: GENESIS_MS, transactions: 4 });
  const nodes: SimNode[] = [];
  for (let at = 0; at < count; at += 1) nodes.push(await startSimNode({ chain, foreign, nowMs: clock.nowMs }));
  open.push(...nodes);
  const file = freshFile();
  const start = (more: Partial<CollectingOptions> = {}) => {
    const urls = nodes.map(({ url }) => url);
    const collecting = startCollecting({ urls, clock, file, limits: LIMITS, scanners, timeoutMs: 60_000, ...more });
    open.push(collecting);
    return collecting;
  };
  const pass = (seconds: number) => clock.until(clock.nowMs() + seconds * 1000);
  return { clock, chain, nodes, file, start, pass };
}

/** Ends it at once, as a kill does, so that the test can go on. */
async function kill(collecting: Collecting): Promise<void> {
  open.splice(open.indexOf(collecting), 1);
  await collecting.kill();
}

function expectOracle({ db, collector }: Collecting, chain: ReturnType<typeof createSimChain>): void {
  const { collected, firstCollected } = collector.status();
  expect(firstCollected).toBe(1);
  const { blocks, deploys, trades } = storedTables(db);
  const upTo = {
    blocks: blocks.filter(({ exact }) => exact === 1),
    trades: trades.filter(({ block }) => Number(block) <= collected!.number),
  };
  const expected = expectedTables(chain, 1, collected!.number);
  expect(upTo).toEqual({ blocks: expected.blocks, trades: expected.trades });
  expect(deploys.map(({ address }) => address)).toEqual(expected.deploys.map(({ address }) => address));
  expect(accountProblems(db, chain, collected!.number)).toEqual([]);
}

describe('a reorg, which Arc rules out', () => {
  test.each(process.env.SLOW ? [6, 12, 60] : [6, 60])(
    'of %i blocks raises an alarm, and the tables become those of the true chain',
    async (depth) => {
      const { clock, chain, start, pass } = await begin();
      const collecting = start();
      await pass(20);
      chain.reorg(depth, clock.nowMs());
      await pass(40);
      const { counters } = collecting.collector.status();
      expect(counters.reorgs).toBeGreaterThan(0);
      expect(counters.replacedBlocks).toBeGreaterThanOrEqual(depth - 4);
      expect(collecting.lines.some((line) => line.startsWith('ALARM'))).toBe(true);
      expectOracle(collecting, chain);
    },
  );

  test('of blocks that were shown but not stored yet replaces nothing, and the true blocks are stored', async () => {
    const { clock, chain, start, pass } = await begin();
    const collecting = start();
    await pass(20);
    chain.reorg(1, clock.nowMs());
    await pass(20);
    expect(collecting.collector.status().counters).toMatchObject({ reorgs: 0, replacedBlocks: 0 });
    expectOracle(collecting, chain);
  });

  test('while the process was down is noticed at the first block that does not follow', async () => {
    const { clock, chain, start, pass } = await begin();
    const first = start();
    await pass(20);
    await kill(first);
    chain.reorg(8, clock.nowMs());
    clock.jump(5000);
    const second = start();
    await pass(30);
    expect(second.collector.status().counters).toMatchObject({ reorgs: 1 });
    expectOracle(second, chain);
  });

  test('while the process was down and the head moved far ahead is noticed where the gap is filled', async () => {
    const { clock, chain, start, pass } = await begin();
    const first = start();
    await pass(20);
    await kill(first);
    chain.reorg(8, clock.nowMs());
    clock.jump(300_000);
    const second = start();
    await pass(60);
    expect(second.collector.status().counters).toMatchObject({ reorgs: 1 });
    expect(second.collector.status().backfill.share).toBe(1);
    expectOracle(second, chain);
  });

  test('to a shorter chain moves the head back, and the tables too', async () => {
    const { clock, chain, nodes, start, pass } = await begin();
    const collecting = start();
    await pass(20);
    const headBefore = chain.headAt(clock.nowMs());
    nodes[0]!.frozenAt = headBefore - 10;
    chain.reorg(20, clock.nowMs());
    await pass(40);
    expect(collecting.collector.status()).toMatchObject({ head: { number: headBefore - 10 } });
    expect(collecting.collector.status().counters.reorgs).toBe(1);
    nodes[0]!.frozenAt = null;
    await pass(20);
    expectOracle(collecting, chain);
  });

  test('is never reported on a chain that only grows', async () => {
    const { chain, start, pass } = await begin();
    const collecting = start();
    await pass(60);
    expect(collecting.collector.status().counters).toMatchObject({
      reorgs: 0,
      replacedBlocks: 0,
      refused: {},
      failures: 0,
    });
    expect(collecting.lines).toEqual([]);
    expectOracle(collecting, chain);
  });
});

describe('an answer that is wrong', () => {
  test.each<[SimFault, string]>([
    ['missingReceipt', 'receiptCount'],
    ['foreignReceipt', 'foreignReceipt'],
    ['swappedLogs', 'logOrder'],
    ['nullBlock', 'missing'],
    ['otherBlock', 'number'],
    ['staleHead', 'staleHead'],
  ])('(%s) is refused as %s, and the next provider’s answer is stored', async (fault, reason) => {
    const { chain, nodes, start, pass } = await begin({ nodes: 2 });
    const collecting = start();
    await pass(20);
    nodes[0]!.fault = () => fault;
    await pass(20);
    const { counters, collected, head } = collecting.collector.status();
    expect(counters.refused[reason]).toBeGreaterThan(0);
    expect(counters.reorgs).toBe(0);
    expect(head!.number - collected!.number).toBeLessThanOrEqual(8);
    nodes[0]!.fault = () => null;
    await pass(20);
    expectOracle(collecting, chain);
  });

  test('because it is of another chain, once, is refused and replaces nothing', async () => {
    const { chain, nodes, start, pass } = await begin();
    const collecting = start();
    await pass(20);
    let lies = 1;
    nodes[0]!.fault = (calls) => (calls.length > 1 && lies-- > 0 ? 'foreignChain' : null);
    await pass(20);
    expect(collecting.collector.status().counters).toMatchObject({ reorgs: 0, refused: { parent: 1 } });
    expectOracle(collecting, chain);
  });

  test('because the head of one provider stands still is passed over for the provider that is ahead', async () => {
    const { chain, clock, nodes, start, pass } = await begin({ nodes: 2 });
    const collecting = start();
    await pass(20);
    const stuckAt = chain.headAt(clock.nowMs());
    nodes[0]!.frozenAt = stuckAt;
    await pass(30);
    const { head, counters } = collecting.collector.status();
    expect(head!.number).toBeGreaterThan(stuckAt + 20);
    expect(counters.refused.staleHead).toBeGreaterThan(0);
    nodes[0]!.frozenAt = null;
    await pass(20);
    expectOracle(collecting, chain);
  });
});

describe('a chain that stops', () => {
  test('has a head that ages, and is collected completely two polls after it goes on', async () => {
    const { chain, clock, start, pass } = await begin();
    const collecting = start();
    await pass(20);
    chain.stall(clock.nowMs(), 60_000);
    await pass(50);
    const { headAdvancedMs, headCheckedMs, head } = collecting.collector.status();
    expect(clock.nowMs() - headAdvancedMs!).toBeGreaterThan(45_000);
    expect(clock.nowMs() - headCheckedMs!).toBeLessThan(3000);
    await pass(13);
    const after = collecting.collector.status();
    expect(after.head!.number).toBeGreaterThan(head!.number);
    expect(clock.nowMs() - after.headAdvancedMs!).toBeLessThan(2500);
    expect(chain.headAt(clock.nowMs()) - after.collected!.number).toBeLessThanOrEqual(5);
  });
});

describe('a restart', () => {
  test('continues where it was, and reads nothing twice', async () => {
    const { chain, nodes, start, pass } = await begin();
    const first = start();
    await pass(30);
    const before = first.collector.status();
    await kill(first);
    const asked = nodes[0]!.calls.get('eth_getBlockReceipts');
    const second = start();
    expect(second.collector.status()).toMatchObject({
      collected: before.collected,
      blocksCollected: before.blocksCollected,
    });
    expect(second.collector.status().headAdvancedMs).toBe(before.headAdvancedMs);
    await pass(10);
    const { collected } = second.collector.status();
    expect(nodes[0]!.calls.get('eth_getBlockReceipts')! - asked!).toBeLessThanOrEqual(
      collected!.number - before.collected!.number + 4,
    );
    expectOracle(second, chain);
  });

  test("over another chain's database empties it and fills it again", async () => {
    const { chain, nodes, clock, start, pass } = await begin();
    const first = start();
    await pass(20);
    await kill(first);
    const other = createSimChain({ seed: 'another', genesisMs: GENESIS_MS, transactions: 4 });
    const node = await startSimNode({ chain: other, nowMs: clock.nowMs });
    open.push(node);
    nodes.splice(0, 1, node);
    const second = start();
    await pass(60);
    expectOracle(second, other);
    expect(other.block(5).hash).not.toBe(chain.block(5).hash);
  });

  test("with one provider's wrong genesis hash empties nothing", async () => {
    const { chain, nodes, start, pass } = await begin();
    const first = start();
    await pass(20);
    const { blocksCollected } = first.collector.status();
    await kill(first);
    let lies = 2;
    nodes[0]!.fault = (calls) =>
      calls.some(({ params }) => params[0] === '0x0') && lies-- > 0 ? 'foreignChain' : null;
    const second = start();
    await pass(20);
    expect(lies).toBeLessThanOrEqual(0);
    expect(second.collector.status().counters.refused).toMatchObject({ genesis: 2 });
    expect(second.collector.status().blocksCollected).toBeGreaterThan(blocksCollected);
    expectOracle(second, chain);
  });

  test('with another scanner scans old blocks again without reading them again', async () => {
    const { chain, nodes, start, pass } = await begin({ scanners: [] });
    const first = start();
    await pass(30);
    await kill(first);
    expect(nodes[0]!.calls.get('eth_getLogs')).toBeUndefined();
    const second = start({ scanners: [createSwapScanner()] });
    await pass(10);
    expect(nodes[0]!.calls.get('eth_getLogs')).toBeGreaterThan(0);
    expectOracle(second, chain);
  });
});

describe('a scanner that finds something new', () => {
  test('scans older blocks again, once', async () => {
    const scanner = createSwapScanner();
    const scanned: { from: number; to: number }[] = [];
    let found = false;
    const finder: LogScanner = {
      ...scanner,
      scan(span) {
        scanned.push({ from: span.from, to: span.to });
        const rescan = !found && span.to < 90 ? { rescanFrom: span.from } : {};
        found ||= span.to < 90;
        return { ...scanner.scan(span), ...rescan };
      },
    };
    const { chain, start, pass } = await begin({ scanners: [finder] });
    const collecting = start({ limits: { ...LIMITS, logSpan: 40 } });
    await pass(40);
    const covering80 = scanned.filter(({ from, to }) => from <= 80 && to >= 80 && to - from > 20);
    expect(covering80.length).toBeGreaterThanOrEqual(2);
    expectOracle(collecting, chain);
  });
});

describe('the past', () => {
  // Thousands of blocks are read whole. What is in them matters little here.
  const transactions = 1;

  test('that every provider has pruned is skipped, and the window counts as complete', async () => {
    const { nodes, start, pass } = await begin({ startBlock: 300, transactions });
    nodes[0]!.prunedBelow = 100;
    const collecting = start();
    await pass(400);
    const { backfill, firstCollected } = collecting.collector.status();
    expect(firstCollected).toBe(100);
    expect(backfill).toMatchObject({ share: 1, feesShare: 1, secondsLeft: 0 });
    expect(collecting.lines.some((line) => line.includes('skips it and older blocks'))).toBe(true);
  });

  test('that a full disk could not store is read again once there is room, and does not count as pruned', async () => {
    const { clock, chain, start, pass } = await begin({ startBlock: 300, transactions });
    const collecting = start({ limits: { ...LIMITS, blocksPerRequest: 4 } });
    const { db, collector, lines } = collecting;
    await pass(3);
    db.pragma(`max_page_count = ${Number(db.pragma('page_count', { simple: true }))}`);
    // The head answers all the time, so a block that cannot be read alone would be given up at its eighth failure, two minutes later.
    chain.stall(clock.nowMs(), 150_000);
    await pass(150);
    expect(collector.status()).toMatchObject({ fault: expect.stringContaining('SQLITE_FULL') });
    expect(collector.status().backfill.share).toBeLessThan(1);
    // New blocks cannot be stored either.
    await pass(20);
    const { head, collected } = collector.status();
    expect(head!.number).toBeGreaterThan(collected!.number + 20);
    db.pragma('max_page_count = 1000000');
    await pass(60);
    expect(collector.status()).toMatchObject({ fault: null, backfill: { share: 1, feesShare: 1 } });
    expect(lines.some((line) => line.includes('could not store what it has read'))).toBe(true);
    expect(lines.some((line) => line.includes('skips it and older blocks'))).toBe(false);
  });

  test('beyond the retention time becomes hourly figures, and the number of raw rows stays bounded', async () => {
    const { clock, start, pass, chain } = await begin({ startBlock: 7200, transactions });
    // The window lies in two hours of the clock: block 6400 begins the second.
    const limits = { ...LIMITS, requestsPerSecond: 50, backfillHours: 0.25, retentionDays: 2 / 24 };
    const first = start({ limits });
    await pass(30);
    const { blocksCollected, collected } = first.collector.status();
    const top = collected!.number;
    expect(first.db.prepare('SELECT count(*) FROM hours').pluck().get()).toBe(0);
    await kill(first);
    // Two hours after it the first of these hours is past the retention, and the second is not.
    clock.jump(2 * 3_600_000);
    const second = start({ limits });
    await pass(70);
    const hours = second.db.prepare('SELECT sum(counted_blocks) AS blocks, sum(transactions) AS txs FROM hours').get();
    const { blocks, txs } = hours as { blocks: number; txs: number };
    const raw = second.db
      .prepare('SELECT count(transactions) FROM blocks WHERE number <= ?')
      .pluck()
      .get(top) as number;
    expect(blocks).toBeGreaterThan(500);
    expect(raw).toBeGreaterThan(500);
    expect(blocks + raw).toBe(blocksCollected);
    const lowest = second.collector.status().firstCollected!;
    const expected = Array.from({ length: blocks }, (_, at) => chain.block(lowest + at).transactions.length);
    expect(txs).toBe(expected.reduce((sum, count) => sum + count, 0));
    expect(second.collector.status().blocksCollected).toBeGreaterThan(blocksCollected);
  });
});
