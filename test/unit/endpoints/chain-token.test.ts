import { describe, expect, test } from 'vitest';
import { PROXY_SLOTS } from '../../../src/chain/contracts.ts';
import { createAccountWrites } from '../../../src/collector/store/accounts.ts';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import { chainToken } from '../../../src/endpoints/chain/token.ts';
import { NotFound } from '../../../src/errors.ts';
import {
  account,
  emptyChainDatabase,
  hash,
  putBlocks,
  putCoverage,
  putTrades,
} from '../../support/chain/chain-rows.ts';
import { RpcFault } from '../../support/chain/rpc-server.ts';
import { collectedStatus, UNTIL } from './collected-fixture.ts';
import { BOB, number, run, TOKEN, USDC, useFixture } from './fixture.ts';

const given = useFixture();
const HOUR = 3600;
const bytes = (of: string) => Buffer.from(of.slice(2), 'hex');
const read = (more: object = {}, address = TOKEN) => run(chainToken, { ...given().sources, ...more }, { address });
const NOT_WATCHED =
  'this service collects trades and transfers of the tokens that it watches, and this is none of them';
const NOT_CREATED = expect.stringContaining('older than the collected blocks');

describe('chain/token', () => {
  test('an ERC-20, of which nothing is collected, in one batch at one block', async () => {
    given().node.methods.eth_getCode = () => '0x600160';
    expect(await read()).toEqual({
      address: TOKEN,
      name: 'Token',
      symbol: 'TKN',
      decimals: 18,
      totalSupply: '1000',
      totalSupplyRaw: '1000000000000000000000',
      codeBytes: 3,
      label: null,
      proxy: null,
      creation: null,
      market: null,
      holdersSeen: null,
      missing: [
        { field: 'creation', reason: NOT_CREATED },
        { field: 'market', reason: NOT_WATCHED },
        { field: 'holdersSeen', reason: NOT_WATCHED },
      ],
      freshness: { head: null, collected: null, lagBlocks: null, lagSeconds: null },
      asOfBlock: 1000,
      source: given().source,
    });
    const batches = (given().node.bodies as { params: unknown[] }[][]).filter(Array.isArray);
    expect(batches).toHaveLength(1);
    expect(batches[0]!.map(({ params }) => params.at(-1))).toEqual(new Array(9).fill('0x3e8'));
  });

  test('without decimals the human supply is null, the raw one is not', async () => {
    delete given().views[TOKEN]!['0x313ce567'];
    expect(await read()).toMatchObject({
      decimals: null,
      totalSupply: null,
      totalSupplyRaw: '1000000000000000000000',
    });
  });

  test('a proxy has its target, and a known contract its name', async () => {
    given().node.methods.eth_getCode = () => '0x6001';
    given().node.methods.eth_getStorageAt = ([, slot]) =>
      number(slot === PROXY_SLOTS['eip1967.proxy.implementation'] ? BigInt(BOB) : 0n);
    given().views[USDC]!['0x18160ddd'] = number(10n ** 12n);
    expect(await read({}, USDC)).toMatchObject({
      label: 'USDC',
      proxy: { standard: 'EIP-1967', target: BOB, targetLabel: null, beacon: null },
    });
  });

  test('a node that gives neither code nor storage still sells the metadata, and the answer says so', async () => {
    given().node.methods.eth_getCode = () => {
      throw new RpcFault(-32000, 'no state');
    };
    const reply = await read();
    expect(reply).toMatchObject({ name: 'Token', codeBytes: null, proxy: null });
    expect(reply.missing).toContainEqual({ field: 'codeBytes', reason: 'no node gave its code' });
    expect(reply.missing).toContainEqual({ field: 'proxy', reason: 'no node gave its storage' });
  });

  test.each<[string, Record<string, string>]>([
    ['no contract', {}],
    ['no supply', { '0x18160ddd': '0x' }],
    ['an ERC-721', { '0x01ffc9a7': number(1n) }],
    [
      'a precompile that answers anything with a hash',
      Object.fromEntries(
        ['0x06fdde03', '0x95d89b41', '0x313ce567', '0x18160ddd'].map((selector) => [selector, `0x${'fe'.repeat(32)}`]),
      ),
    ],
  ])('%s is 404', async (what, answers) => {
    given().views[TOKEN] = what === 'no contract' ? {} : { ...given().views[TOKEN], ...answers };
    await expect(read()).rejects.toBeInstanceOf(NotFound);
  });
});

describe('what is collected of a token', () => {
  const place = (block: number, at: number) => ({ block, at });
  function collected() {
    const db = emptyChainDatabase();
    const pool = account(0x99);
    db.prepare("INSERT INTO pools VALUES (?, 'Uniswap v4', 'v4', ?, ?, 1, 18, 6, 1)").run(
      pool,
      account(0x40),
      bytes(TOKEN),
    );
    putBlocks(db, [
      { number: 1, at: UNTIL - 25 * HOUR },
      { number: 1000, at: UNTIL },
    ]);
    putCoverage(db, 'logs', [[1, 1000]]);
    const trade = (block: number, at: number, usdc: number) => ({
      block,
      at,
      token: bytes(TOKEN),
      pool,
      baseE9: 10 ** 9,
      usdcE9: usdc * 10 ** 9,
    });
    putTrades(db, [
      trade(2, UNTIL - 25 * HOUR, 2),
      trade(500, UNTIL - 2 * HOUR, 3),
      { ...trade(900, UNTIL - 60, 5), side: 'buy', priceBefore: 4.9, priceAfter: 5, usdcReserve: 1000 },
    ]);
    const status = collectedStatus();
    const more = {
      reads: createChainReads(db),
      collector: { status: () => status },
      clock: { ...given().sources.clock, nowMs: () => UNTIL * 1000 },
      collected: { ...given().sources.collected, watched: [{ symbol: 'TKN', address: TOKEN }] },
    };
    return { db, more };
  }

  test('is its price, the volume and pools of 24 hours, and how many accounts moved it', async () => {
    const { db, more } = collected();
    createAccountWrites(db).storeTokens(
      [BOB, TOKEN].map((of) => ({ ...place(7, UNTIL), account: bytes(of), token: bytes(TOKEN) })),
    );
    const { market, holdersSeen, freshness, missing } = await read(more);
    expect(market).toEqual({
      symbol: 'TKN',
      rateUnit: 'USDC/TKN',
      baseUnit: 'TKN',
      ageSeconds: 60,
      change24hPercent: '150',
      last: { rate: '5', at: UNTIL - 60, block: 900, transaction: `0x${hash(900).toString('hex')}` },
      window: {
        minutes: 1440,
        trades: 2,
        excluded: 0,
        volumeBase: '2',
        volumeUsdc: '8',
        complete: true,
        vwap: '4',
        low: '3',
        high: '5',
      },
      pools: [
        {
          id: `0x${account(0x99).toString('hex')}`,
          venue: 'Uniswap v4',
          trades: 2,
          volumeUsdc: '8',
          volumeShare: 1,
          address: `0x${account(0x40).toString('hex')}`,
          state: { rate: '5', at: UNTIL - 60, depth10BpsUsdc: '0.499875' },
        },
      ],
      poolsTruncated: false,
    });
    expect(holdersSeen).toEqual({
      accounts: 2,
      since: place(1, UNTIL - 25 * HOUR),
      until: place(1000, UNTIL),
      complete: true,
    });
    expect(freshness).toMatchObject({ collected: 1000, lagBlocks: 0 });
    expect(missing).toEqual([{ field: 'creation', reason: NOT_CREATED }]);
  });

  test('is who created it', async () => {
    const { db, more } = collected();
    db.prepare(`INSERT INTO deploys (block, at, address, deployer, transaction_hash, code_bytes, code_hash, label)
       VALUES (9, ?, ?, ?, ?, 2, ?, ?)`).run(...[UNTIL - 9, bytes(TOKEN), bytes(BOB), hash(7), hash(8), 'token "TKN"']);
    const reply = await read(more);
    expect(reply).toMatchObject({
      label: 'token "TKN"',
      creation: { creator: BOB, transaction: `0x${hash(7).toString('hex')}`, ...place(9, UNTIL - 9) },
    });
    expect(reply.missing).toEqual([]);
  });

  test('of more than 20 pools the largest are listed', async () => {
    const { db, more } = collected();
    for (let at = 1; at <= 21; at += 1) {
      const pool = account(0x100 + at);
      db.prepare("INSERT INTO pools VALUES (?, 'Uniswap v3', 'v3', ?, ?, 1, 18, 6, 1)").run(pool, pool, bytes(TOKEN));
      putTrades(db, [
        { block: 600 + at, at: UNTIL - HOUR, token: bytes(TOKEN), pool, baseE9: at, usdcE9: at, logIndex: at },
      ]);
    }
    const { pools, poolsTruncated } = (await read(more)).market as { pools: unknown[]; poolsTruncated: boolean };
    expect([pools.length, poolsTruncated]).toEqual([20, true]);
    expect(pools[0]).toMatchObject({ venue: 'Uniswap v4', volumeUsdc: '8' });
  });

  test('is nothing of USDC and before the first block, each with its reason', async () => {
    const { more } = collected();
    given().views[USDC]!['0x18160ddd'] = number(10n ** 12n);
    const reasonOf = (reply: Record<string, unknown>) =>
      (reply.missing as { field: string; reason: string }[]).slice(1);
    const usdc = await read(more, USDC);
    expect([usdc.market, usdc.holdersSeen]).toEqual([null, null]);
    expect(reasonOf(usdc)[0]).toEqual({ field: 'market', reason: expect.stringContaining('prices are quoted in') });
    const early = await read({ ...more, collector: given().sources.collector });
    expect([early.market, early.holdersSeen]).toEqual([null, null]);
    expect(reasonOf(early)).toEqual(
      ['market', 'holdersSeen'].map((field) => ({ field, reason: 'this service has collected nothing yet' })),
    );
  });
});
