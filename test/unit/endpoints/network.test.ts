import { describe, expect, test } from 'vitest';
import { NO_COLLECTOR } from '../../../src/collector/store/facts.ts';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import { network } from '../../../src/endpoints/network.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { emptyChainDatabase, putBlocks } from '../../support/chain/chain-rows.ts';
import { HASH, header, hex, NOW_SECONDS, number, run, useFixture } from './fixture.ts';

const given = useFixture();

describe('network', () => {
  test('measures block time and transactions over recent blocks, and reports no collector', async () => {
    expect(await run(network, given().sources)).toEqual({
      name: 'Arc',
      playMoney: false,
      chainId: 5042,
      genesis: { hash: number(0n), at: NOW_SECONDS - 500 },
      head: { number: 1000, hash: number(1000n), at: NOW_SECONDS, ageSeconds: 0 },
      blocksCollected: 0,
      firstCollected: null,
      lagBlocks: null,
      lagSeconds: null,
      blockTimeSeconds: 0.5,
      // 20 blocks, two of each last digit: 90 transactions in 10 seconds.
      txPerSecond: 9,
      asOfBlock: 1000,
      freshness: { head: 1000, collected: null, lagBlocks: null, lagSeconds: null },
      source: given().source,
    });
  });

  test('reports the collector’s position, and its distance from the live head', async () => {
    const status = {
      ...NO_COLLECTOR.status(),
      // The collector's own head is older than the live one.
      head: { number: 995, hash: HASH, at: NOW_SECONDS - 3 },
      collected: { number: 990, at: NOW_SECONDS - 5 },
      firstCollected: 12,
      blocksCollected: 979,
    };
    const sources = { ...given().sources, collector: { status: () => status } };
    expect(await run(network, sources)).toMatchObject({
      blocksCollected: 979,
      firstCollected: 12,
      lagBlocks: 10,
      lagSeconds: 5,
      freshness: { head: 1000, collected: 990, lagBlocks: 10, lagSeconds: 5 },
    });
  });

  test('a head from the future has age 0, a chain of one block no block time, and a pruned genesis is null', async () => {
    const future = { ...header(0), timestamp: hex(NOW_SECONDS + 60) };
    given().node.methods.eth_getBlockByNumber = () => future;
    expect(await run(network, given().sources)).toMatchObject({
      head: { ageSeconds: 0 },
      blockTimeSeconds: null,
      txPerSecond: null,
    });
    given().node.methods.eth_getBlockByNumber = ([block]) =>
      block === '0x0' ? null : header(block === 'latest' ? 1000 : Number(block));
    expect(await run(network, given().sources)).toMatchObject({ genesis: null, blockTimeSeconds: 0.5 });
  });

  test('a block that is missing or malformed is 502', async () => {
    given().node.methods.eth_getBlockByNumber = ([block]) => (block === 'latest' ? header(1000) : null);
    await expect(run(network, given().sources)).rejects.toBeInstanceOf(UpstreamFailed);
    given().node.methods.eth_getBlockByNumber = () => ({ number: 'soon' });
    await expect(run(network, given().sources)).rejects.toBeInstanceOf(UpstreamFailed);
  });

  test('while the chain is away the collector’s head is answered, with its age', async () => {
    const { sources, node } = given();
    await node.stop();
    const db = emptyChainDatabase();
    putBlocks(db, [
      { number: 989, at: NOW_SECONDS - 41, counts: [0, 0, 1, 3] },
      { number: 990, at: NOW_SECONDS - 40, counts: [0, 2, 0, 0] },
    ]);
    const status = {
      ...NO_COLLECTOR.status(),
      head: { number: 995, hash: HASH, at: NOW_SECONDS - 38 },
      headCheckedMs: (NOW_SECONDS - 37) * 1000,
      collected: { number: 990, at: NOW_SECONDS - 40 },
      firstCollected: 12,
      blocksCollected: 979,
      blockTimeSeconds: 0.5,
    };
    const away = { ...sources, reads: createChainReads(db), collector: { status: () => status } };
    expect(await run(network, away)).toMatchObject({
      genesis: null,
      head: { number: 995, hash: HASH, at: NOW_SECONDS - 38, ageSeconds: 38 },
      lagBlocks: 5,
      lagSeconds: 2,
      blockTimeSeconds: 0.5,
      txPerSecond: 6,
      asOfBlock: 995,
      source: { name: 'Collected from eip155:5042 over JSON-RPC', retrievedAt: NOW_SECONDS - 37 },
    });
    await expect(run(network, sources)).rejects.toBeInstanceOf(UpstreamFailed);
  });
});
