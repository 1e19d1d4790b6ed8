import { describe, expect, test } from 'vitest';
import { PROXY_SLOTS } from '../../../src/chain/contracts.ts';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import { createChainWrites } from '../../../src/collector/store/writes.ts';
import { chainWallet } from '../../../src/endpoints/chain/wallet.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { emptyChainDatabase, hash, putBlocks, putCoverage } from '../../support/chain/chain-rows.ts';
import { RpcFault } from '../../support/chain/rpc-server.ts';
import { ALICE, address, BOB, number, run, TOKEN, USDC, useFixture } from './fixture.ts';

const given = useFixture();
const WATCHED = address('e0');
const bytes = (of: string) => Buffer.from(of.slice(2), 'hex');
const read = (more: object = {}) => run(chainWallet, { ...given().sources, ...more }, { address: ALICE });
const watching = (...addresses: `0x${string}`[]) => ({
  collected: { ...given().sources.collected, watched: addresses.map((of, at) => ({ symbol: `W${at}`, address: of })) },
});
const USDC_HELD = {
  address: USDC,
  symbol: 'USDC',
  decimals: 6,
  balance: '1.234567',
  balanceRaw: '1234567',
  lastMovedAt: null,
};
/** `missing` of an answer in which the newest transfers of these tokens are not known. */
const notCollected = (...tokens: string[]) => ({
  field: 'balances.lastMovedAt',
  reason: `this service does not collect the transfers of ${tokens.join(', ')}`,
});
const TOKEN_HELD = {
  address: TOKEN,
  symbol: 'TKN',
  decimals: 18,
  balance: '0.5',
  balanceRaw: '500000000000000000',
  lastMovedAt: null,
};

describe('chain/wallet', () => {
  test('a wallet: both USDC balances exact, all read at one block and in one batch', async () => {
    expect(await read()).toEqual({
      address: ALICE,
      type: 'wallet',
      usdc: '1.234567',
      nativeUsdc: '1.234567890000000001',
      note: expect.stringContaining('same money'),
      projectToken: null,
      balances: [USDC_HELD],
      transactionsSent: 7,
      nonce: 7,
      isContract: false,
      codeBytes: 0,
      label: null,
      proxy: null,
      creation: null,
      activity: null,
      missing: [notCollected(USDC), { field: 'activity', reason: 'this service has collected nothing yet' }],
      asOfBlock: 1000,
      source: given().source,
    });
    const batches = (given().node.bodies as { params: unknown[] }[][]).filter(Array.isArray);
    expect(batches).toHaveLength(1);
    expect(batches[0]!.map(({ params }) => params.at(-1))).toEqual(new Array(7).fill('0x3e8'));
  });

  test.each([
    ['contract', '0x6000', 2, null],
    ['wallet', `0xef0100${'ab'.repeat(20)}`, 23, { standard: 'EIP-7702', target: `0x${'ab'.repeat(20)}` }],
    ['contract', `0xef0100${'ab'.repeat(21)}`, 24, null],
  ])('%s with code %s', async (type, code, codeBytes, proxy) => {
    given().node.methods.eth_getCode = () => code;
    const reply = await read();
    expect(reply).toMatchObject({ type, isContract: type === 'contract', codeBytes });
    expect(reply.proxy).toEqual(proxy && { ...proxy, targetLabel: null, beacon: null });
  });

  test('a proxy has its target, with the name of a known one', async () => {
    given().node.methods.eth_getCode = () => '0x6000';
    given().node.methods.eth_getStorageAt = ([, slot]) =>
      slot === PROXY_SLOTS['org.zeppelinos.proxy.implementation']
        ? number(BigInt('0xca11bde05977b3631167028862be2a173976ca11'))
        : number(0n);
    expect((await read()).proxy).toEqual({
      standard: 'ZeppelinOS',
      target: '0xca11bde05977b3631167028862be2a173976ca11',
      targetLabel: 'Multicall3',
      beacon: null,
    });
  });

  test('a watched token that refuses does not hide a contract’s proxy', async () => {
    const view = given().node.methods.eth_call!;
    given().node.methods.eth_getCode = () => '0x6000';
    given().node.methods.eth_getStorageAt = ([, slot]) =>
      number(slot === PROXY_SLOTS['eip1967.proxy.implementation'] ? 0xbeefn : 0n);
    given().node.methods.eth_call = (params) => {
      if ((params as [{ to: string }])[0].to === WATCHED) throw new RpcFault(3, 'execution reverted');
      return view(params);
    };
    expect((await read(watching(WATCHED))).proxy).toMatchObject({ standard: 'EIP-1967', target: address('beef') });
  });

  test('a known contract has its name', async () => {
    given().views[USDC]!['0x70a08231'] = number(0n);
    expect(await run(chainWallet, given().sources, { address: USDC })).toMatchObject({ label: 'USDC', usdc: '0' });
  });
});

describe('the balances of chain/wallet', () => {
  test('are USDC’s, the project token’s and those of every watched token, each once', async () => {
    given().views[WATCHED] = { ...given().views[TOKEN], '0x313ce567': number(2n), '0x70a08231': number(5n) };
    const reply = await read({ ...watching(TOKEN, WATCHED, USDC), projectToken: TOKEN, usyc: { token: WATCHED } });
    expect(reply.balances).toEqual([
      USDC_HELD,
      TOKEN_HELD,
      { ...TOKEN_HELD, address: WATCHED, decimals: 2, balance: '0.05', balanceRaw: '5' },
    ]);
    expect(reply.projectToken).toEqual({ address: TOKEN, symbol: 'TKN', balance: '0.5' });
  });

  test('are at most 50', async () => {
    const many = Array.from({ length: 60 }, (_, at) => address(`c${at + 10}`));
    expect((await read(watching(...many))).balances).toHaveLength(50);
  });

  test('are null of a token whose contract does not answer, under the name that this service has for it', async () => {
    const reply = await read({ ...watching(TOKEN, WATCHED), projectToken: address('99') });
    expect(reply.projectToken).toEqual({ address: address('99'), symbol: null, balance: null });
    expect(reply.balances).toMatchObject([USDC_HELD, { symbol: null }, TOKEN_HELD, { symbol: 'W1', balance: null }]);
    expect(reply.missing).toMatchObject([notCollected(USDC, address('99')), { field: 'activity' }]);
  });

  test('say why, when the node gives one of them not, and still sell the rest', async () => {
    const view = given().node.methods.eth_call!;
    given().node.methods.eth_call = (params) => {
      const [{ to, data }] = params as [{ to: string; data: string }];
      if (to === TOKEN && data.startsWith('0x70a08231')) throw new RpcFault(-32000, 'busy');
      if (to === WATCHED && !data.startsWith('0x70a08231')) throw new RpcFault(-32000, 'busy');
      return view(params);
    };
    given().views[WATCHED] = given().views[TOKEN]!;
    const reply = await read(watching(TOKEN, WATCHED));
    const raw = TOKEN_HELD.balanceRaw;
    expect(reply.balances).toMatchObject([
      USDC_HELD,
      { balance: null, balanceRaw: null },
      { symbol: 'W1', decimals: null, balance: null, balanceRaw: raw },
    ]);
    expect(reply.missing).toEqual([
      { field: `balances of ${TOKEN}`, reason: 'no node gave it' },
      { field: 'balances', reason: 'no node gave symbols and decimals, so amounts are in base units' },
      notCollected(USDC),
      { field: 'activity', reason: 'this service has collected nothing yet' },
    ]);
  });

  test('that are two, as on a local chain, are not said to be the same money', async () => {
    expect((await read()).note).toMatch(/same money/);
    given().node.methods.eth_getBalance = () => number(0n);
    expect(await read()).toMatchObject({
      usdc: '1.234567',
      nativeUsdc: '0',
      note: expect.stringMatching(/two balances/),
    });
  });

  test('without that of USDC the call fails with 502', async () => {
    delete given().views[USDC];
    await expect(read()).rejects.toBeInstanceOf(UpstreamFailed);
  });

  test('a provider that lacks the block causes 502, not an invented balance', async () => {
    given().node.methods.eth_getBalance = () => {
      throw new RpcFault(-32000, 'header not found');
    };
    await expect(read()).rejects.toBeInstanceOf(UpstreamFailed);
  });

  test('a node without the code causes 502, because the type depends on it, and one without storage does not', async () => {
    given().node.methods.eth_getCode = () => '0x6000';
    given().node.methods.eth_getStorageAt = () => {
      throw new RpcFault(-32000, 'no state');
    };
    expect((await read()).missing).toContainEqual({ field: 'proxy', reason: 'no node gave its storage' });
    given().node.methods.eth_getCode = () => null;
    await expect(read()).rejects.toBeInstanceOf(UpstreamFailed);
  });
});

describe('what is collected of an account', () => {
  const NOW = 1_795_003_200;
  const place = (block: number) => ({ block, at: NOW + block });
  const collected = () => {
    const db = emptyChainDatabase();
    putBlocks(
      db,
      [1, 5, 9, 20].map((block) => ({ number: block, at: NOW + block })),
    );
    putCoverage(db, 'accounts', [[1, 20]]);
    putCoverage(db, 'logs', [[1, 20]]);
    return { db, writes: createChainWrites(db), reads: createChainReads(db) };
  };
  const see = (block: number, of: string) => ({ ...place(block), account: bytes(of) });

  test('is its first and last transaction, and when a watched token last moved', async () => {
    const { db, writes, reads } = collected();
    db.prepare('DELETE FROM blocks').run();
    const row = { hash: hash(1), parentHash: hash(0), baseFee: 1n, nextBaseFee: null, utilisation: 0, gasLimit: 1n };
    const counts = { transactions: 1, deploys: 0, nativeTransfers: 1, tokenTransfers: 0, contractCalls: 0 };
    writes.storeBlocks({
      blocks: [5, 6, 7, 8, 9].map((block) => ({ number: block, at: NOW + block, ...row, ...counts })),
      deploys: [],
      accounts: [see(5, BOB), see(6, ALICE), see(8, ALICE)],
      scan: () => ({
        trades: [],
        tokenEvents: [],
        pools: [],
        tokenAccounts: [{ ...see(7, ALICE), token: bytes(TOKEN) }],
      }),
    });
    putCoverage(db, 'accounts', [[5, 9]]);
    const found = { first: place(6), last: place(8), since: place(5), until: place(9) };
    // The chain is 991 blocks further, and the account may be in one of them.
    const early = await read({ reads, ...watching(TOKEN, WATCHED) });
    expect([early.asOfBlock, early.activity]).toEqual([1000, { ...found, complete: false }]);
    expect(early.missing).toEqual([
      notCollected(USDC),
      { field: 'activity', reason: expect.stringContaining('not collected yet') },
    ]);
    given().node.methods.eth_blockNumber = () => '0x9';
    const reply = await read({ reads, ...watching(TOKEN, WATCHED) });
    expect([reply.asOfBlock, reply.activity]).toEqual([9, { ...found, complete: true }]);
    expect(reply.balances).toMatchObject([{ lastMovedAt: null }, { lastMovedAt: NOW + 7 }, { lastMovedAt: null }]);
    expect(reply.missing).toEqual([notCollected(USDC)]);
  });

  test('is null where it was not seen', async () => {
    const { reads } = collected();
    expect((await read({ reads })).activity).toMatchObject({
      first: null,
      last: null,
      since: place(1),
      until: place(20),
    });
  });

  test('is who created a contract, and its label; for one that is not collected the reason', async () => {
    const { db, reads } = collected();
    given().node.methods.eth_getCode = () => '0x6000';
    expect((await read({ reads })).missing).toMatchObject([
      notCollected(USDC),
      { field: 'creation', reason: expect.stringContaining('older than the collected blocks') },
      { field: 'activity' },
    ]);
    db.prepare(`INSERT INTO deploys (block, at, address, deployer, transaction_hash, code_bytes, code_hash, label)
       VALUES (9, ?, ?, ?, ?, 2, ?, ?)`).run(...[NOW + 9, bytes(ALICE), bytes(BOB), hash(7), hash(8), 'token "A"']);
    expect(await read({ reads })).toMatchObject({
      label: 'token "A"',
      creation: { creator: BOB, transaction: `0x${hash(7).toString('hex')}`, ...place(9) },
    });
    given().node.methods.eth_getCode = () => '0x';
    expect((await read({ reads })).creation).toBeNull();
  });
});
