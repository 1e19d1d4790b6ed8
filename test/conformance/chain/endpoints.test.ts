import { encodeFunctionData, keccak256, stringToHex } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { artifacts } from '../../../dev/contracts.ts';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type AllSources, catalogue } from '../../../src/catalogue/catalogue.ts';
import { parseParams } from '../../../src/catalogue/params.ts';
import { listedPath } from '../../../src/catalogue/paths.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { NO_COLLECTOR } from '../../../src/collector/store/facts.ts';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import { NotFound } from '../../../src/errors.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { emptyChainDatabase } from '../../support/chain/chain-rows.ts';
import { openClient } from '../../support/chain/client.ts';
import { usdcCost } from '../../support/chain/recount.ts';
import { type ChainSources, SETTINGS } from '../../unit/endpoints/fixture.ts';

// Compares figures with the node's own answers, which are read by other code than the service's client and computed again.
type Hex = `0x${string}`;
type Block = Record<'number' | 'hash' | 'timestamp' | 'baseFeePerGas', Hex> & { transactions: unknown[] };
type Sent = Record<'nonce' | 'gas' | 'maxFeePerGas' | 'maxPriorityFeePerGas', Hex>;
type Receipt = Record<'status' | 'blockNumber' | 'gasUsed' | 'effectiveGasPrice', Hex> & {
  contractAddress: Hex | null;
  logs: Record<'address' | 'logIndex' | 'data', Hex>[];
};

let chainNode: EmbeddedNetwork;
let chain: OpenChainClient;
let sources: ChainSources;
let token: Hex;
let legacy: Hex;
const holder = createAccount().address;
const recipient = createAccount().address;
/** 100 gwei. By default the node may offer less than the next block's base fee, and would then drop the transaction. */
const AMPLE_FEE = { maxFeePerGas: '0x174876e800' };
/** Has time for a busy node: an answer about a pending transaction leaves out what the node says after 3 s. */
const patientClock: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(20 * ms, signal) };

beforeAll(async () => {
  chainNode = await startEmbeddedNetwork({ traffic: false });
  chain = openClient({ rpcUrls: [chainNode.rpcUrl], chainId: chainNode.chainId, timeoutMs: 60_000 });
  await chainNode.pauseMining();
  token = await chainNode.deploy('Token', ['Test Token', 'TST', 8]);
  legacy = await chainNode.deploy('LegacyToken', [
    stringToHex('Legacy', { size: 32 }),
    stringToHex('OLD', { size: 32 }),
    18n,
  ]);
  await chainNode.rpc('anvil_impersonateAccount', [holder]);
  await chainNode.fundNative(holder, 5_000_000_000_000_000_001n);
  await chainNode.fundUsdc(holder, 123_456_789n);
  await send({ to: token, data: mint(holder, 250_000_000n) });
  sources = {
    chain,
    chainName: { name: 'Arc', isPlayMoney: true },
    explorerUrl: null,
    clock: patientClock,
    usdc: chainNode.usdc,
    projectToken: token,
    collector: NO_COLLECTOR,
    reads: createChainReads(emptyChainDatabase()),
    collected: SETTINGS,
  };
  await chainNode.resumeMining();
});
afterAll(async () => {
  await chain?.close();
  await chainNode?.stop();
});

/** One call, as the service makes it: parsed parameters, and a reply that is checked against the published schema. */
async function ask<T>(path: string, query: Record<string, string> = {}): Promise<T> {
  const endpoint = catalogue.find((candidate) => listedPath(candidate) === path)!;
  const reply = await endpoint.run(
    parseParams(endpoint, query),
    sources as unknown as AllSources,
    AbortSignal.timeout(60_000),
  );
  return endpoint.result.parse(reply) as T;
}

async function send(transaction: { from?: Hex; to?: Hex; data?: Hex; value?: Hex; gas?: Hex }): Promise<Hex> {
  const hash = await chainNode.rpc<Hex>('eth_sendTransaction', [{ from: holder, ...AMPLE_FEE, ...transaction }]);
  await chainNode.mine();
  return hash;
}

const quantity = async (method: string, params: readonly unknown[]) => BigInt(await chainNode.rpc<Hex>(method, params));
const blockAt = (number: number | 'latest') =>
  chainNode.rpc<Block>('eth_getBlockByNumber', [number === 'latest' ? number : `0x${number.toString(16)}`, false]);
const view = (to: Hex, name: 'balanceOf' | 'totalSupply', args: readonly unknown[], block: number) => {
  const data = encodeFunctionData({ abi: artifacts.Token.abi, functionName: name, args: [...args] });
  return quantity('eth_call', [{ to, data }, `0x${block.toString(16)}`]);
};
/** A decimal string back to base units; throws unless it is exact. */
function units(text: string, decimals: number): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  if (fraction.length > decimals) throw new Error(`${text} has more than ${decimals} decimals`);
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}
const mint = (to: Hex, amount: bigint) =>
  encodeFunctionData({ abi: artifacts.Token.abi, functionName: 'mint', args: [to, amount] });
const transfer = (to: Hex, amount: bigint) =>
  encodeFunctionData({ abi: artifacts.Token.abi, functionName: 'transfer', args: [to, amount] });

test('network gives the chain’s own genesis, head, block time and rate of transactions', async () => {
  const reply = await ask<{
    chainId: number;
    asOfBlock: number;
    genesis: { hash: string; at: number };
    head: { number: number; hash: string; at: number; ageSeconds: number };
    blockTimeSeconds: number | null;
    txPerSecond: number | null;
  }>('/v1/network');
  const [genesis, head] = [await blockAt(0), await blockAt(reply.asOfBlock)];
  expect(BigInt(reply.chainId)).toBe(await quantity('eth_chainId', []));
  expect(reply.genesis).toEqual({ hash: genesis.hash, at: Number(genesis.timestamp) });
  expect(reply.head).toMatchObject({ number: reply.asOfBlock, hash: head.hash, at: Number(head.timestamp) });
  expect(reply.head.ageSeconds).toBeGreaterThanOrEqual(0);
  const start = Math.max(reply.asOfBlock - 200, 1);
  const seconds = Number(head.timestamp) - Number((await blockAt(start)).timestamp);
  if (seconds === 0) return expect(reply).toMatchObject({ blockTimeSeconds: null, txPerSecond: null });
  const blockTime = seconds / (reply.asOfBlock - start);
  expect(reply.blockTimeSeconds).toBeCloseTo(blockTime, 3);
  const sample = [];
  for (let number = Math.max(reply.asOfBlock - 19, 1); number <= reply.asOfBlock; number++)
    sample.push(await blockAt(number));
  const transactions = sample.reduce((sum, block) => sum + block.transactions.length, 0);
  expect(reply.txPerSecond).toBeCloseTo(transactions / (sample.length * blockTime), 2);
});

describe('fees/estimate', () => {
  test.each(['/v1/fees/estimate', '/v1/paid/fees/estimate'])(
    '%s multiplies the gas by the base fee: exact in base units, rounded up in USDC',
    async (path) => {
      const reply = await ask<{ asOfBlock: number; baseFeeGwei: string; costUsdc: string; costWei: string }>(path, {
        gas: '112519',
      });
      const baseFee = BigInt((await blockAt(reply.asOfBlock)).baseFeePerGas);
      expect(units(reply.baseFeeGwei, 9)).toBe(baseFee);
      expect(BigInt(reply.costWei)).toBe(112_519n * baseFee);
      expect(reply.costUsdc).toBe(usdcCost(112_519n * baseFee));
    },
  );

  test('the percentiles equal those of the blocks themselves', async () => {
    const reply = await ask<{
      asOfBlock: number;
      gas: number;
      nextBaseFeeGwei: string;
      costNextUsdc: string;
      costNextWei: string;
      lastHour: { blocks: number; percentiles: { percentile: number; baseFeeGwei: string; costUsdc: string }[] };
    }>('/v1/paid/fees/estimate');
    expect(reply.gas).toBe(21_000);
    expect(BigInt(reply.costNextWei)).toBe(21_000n * units(reply.nextBaseFeeGwei, 9));
    expect(reply.costNextUsdc).toBe(usdcCost(BigInt(reply.costNextWei)));
    expect(reply.lastHour.blocks).toBe(reply.asOfBlock + 1);
    const fees: bigint[] = [];
    for (let block = 0; block <= reply.asOfBlock; block++) fees.push(BigInt((await blockAt(block)).baseFeePerGas));
    fees.sort((a, b) => (a < b ? -1 : Number(a > b)));
    for (const { percentile, baseFeeGwei, costUsdc } of reply.lastHour.percentiles) {
      const fee = fees[Math.ceil((percentile * fees.length) / 100) - 1]!;
      expect(units(baseFeeGwei, 9)).toBe(fee);
      expect(costUsdc).toBe(usdcCost(21_000n * fee));
    }
  });
});

describe('chain/wallet', () => {
  type Wallet = Record<'usdc' | 'nativeUsdc' | 'type', string> &
    Record<'asOfBlock' | 'transactionsSent', number> & {
      projectToken: Record<'address' | 'symbol' | 'balance', string>;
    };
  const read = async (address: Hex) => await ask<Wallet>('/v1/paid/chain/wallet', { address });

  test('shows a wallet as it was at the named block, and not at a later one', async () => {
    const [owner, paid] = [createAccount().address, createAccount().address];
    await chainNode.rpc('anvil_impersonateAccount', [owner]);
    await chainNode.fundNative(owner, 10n ** 18n + 1n);
    await chainNode.fundUsdc(owner, 123_456_789n);
    await send({ from: owner, to: token, data: mint(owner, 250_000_000n) });
    const reply = await read(owner);
    await send({ from: owner, to: chainNode.usdc, data: transfer(paid, 1_000_000n) });
    const at = `0x${reply.asOfBlock.toString(16)}`;
    expect(units(reply.usdc, 6)).toBe(await view(chainNode.usdc, 'balanceOf', [owner], reply.asOfBlock));
    expect(units(reply.nativeUsdc, 18)).toBe(await quantity('eth_getBalance', [owner, at]));
    expect([reply.transactionsSent, await quantity('eth_getTransactionCount', [owner, at])]).toEqual([1, 1n]);
    expect(reply).toMatchObject({ type: 'wallet', codeBytes: 0, usdc: '123.456789' });
    expect(reply.projectToken).toEqual({ address: token.toLowerCase(), symbol: 'TST', balance: '2.5' });
    expect(units((await read(paid)).usdc, 6)).toBe(1_000_000n);
  });

  test('shows the length of a contract’s code, and calls a delegated wallet a wallet', async () => {
    const code = await chainNode.rpc<Hex>('eth_getCode', [token, 'latest']);
    expect(await read(token)).toMatchObject({ type: 'contract', codeBytes: (code.length - 2) / 2 });
    const delegated = createAccount().address;
    await chainNode.rpc('anvil_setCode', [delegated, `0xef0100${token.slice(2)}`]);
    await chainNode.mine();
    expect(await read(delegated)).toMatchObject({ type: 'wallet', codeBytes: 23 });
  });
});

describe('whose code an account runs', () => {
  type Proxied = { proxy: Record<'standard' | 'target' | 'beacon', string | null> | null };
  const slotOf = (name: string, less: bigint) => `0x${(BigInt(keccak256(stringToHex(name))) - less).toString(16)}`;
  const place = async (address: string, code: string, slots: Record<string, string> = {}) => {
    await chainNode.rpc('anvil_setCode', [address, code]);
    for (const [slot, target] of Object.entries(slots))
      await chainNode.rpc('anvil_setStorageAt', [address, slot, `0x${target.slice(2).padStart(64, '0')}`]);
    await chainNode.mine();
    return (await ask<Proxied>('/v1/paid/chain/wallet', { address })).proxy;
  };

  test('is read from its code or from the slot of its standard', async () => {
    const own = token.toLowerCase();
    const fresh = () => createAccount().address.toLowerCase();
    const minimal = `0x363d3d373d3d3d363d73${own.slice(2)}5af43d82803e903d91602b57fd5bf3`;
    // Runs no code of the target: it only has code and a slot, as a proxy has.
    const code = '0x60006000f3';
    const plain = { target: own, beacon: null };
    expect(await place(fresh(), code)).toBeNull();
    expect(await place(fresh(), minimal)).toMatchObject({ standard: 'EIP-1167', ...plain });
    expect(await place(fresh(), `0xef0100${own.slice(2)}`)).toMatchObject({ standard: 'EIP-7702', ...plain });
    const slots = { [slotOf('eip1967.proxy.implementation', 1n)]: own };
    expect(await place(fresh(), code, slots)).toMatchObject({ standard: 'EIP-1967', ...plain });
    const zeppelin = { [slotOf('org.zeppelinos.proxy.implementation', 0n)]: own };
    expect(await place(fresh(), code, zeppelin)).toMatchObject({ standard: 'ZeppelinOS', ...plain });
    // PUSH20 target, PUSH0 MSTORE, PUSH1 32 PUSH0 RETURN: answers any call with the target.
    const beacon = fresh();
    await place(beacon, `0x73${own.slice(2)}5f5260205ff3`);
    expect(await place(fresh(), code, { [slotOf('eip1967.proxy.beacon', 1n)]: beacon })).toMatchObject({
      standard: 'EIP-1967 beacon',
      target: own,
      beacon,
    });
  });
});

describe('chain/token', () => {
  test.each([
    ['Token', () => token, { name: 'Test Token', symbol: 'TST', decimals: 8 }],
    ['LegacyToken', () => legacy, { name: 'Legacy', symbol: 'OLD', decimals: 18 }],
    ['Usdc', () => chainNode.usdc, { symbol: 'USDC', decimals: 6 }],
  ] as const)('%s has its own name, symbol, decimals and supply', async (_name, addressOf, expected) => {
    const address = addressOf();
    const reply = await ask<{
      asOfBlock: number;
      name: string;
      symbol: string;
      decimals: number | null;
      totalSupply: string | null;
      totalSupplyRaw: string;
    }>('/v1/paid/chain/token', { address });
    const supply = await view(address, 'totalSupply', [], reply.asOfBlock);
    expect(BigInt(reply.totalSupplyRaw)).toBe(supply);
    if (reply.decimals !== null) expect(units(reply.totalSupply!, reply.decimals)).toBe(supply);
    expect(reply).toMatchObject(expected);
  });

  test.each([
    ['a wallet', () => holder],
    ['another contract', () => chainNode.multicall3],
    ['the identity precompile', () => `0x${'4'.padStart(40, '0')}` as const],
    ['the SHA-256 precompile', () => `0x${'2'.padStart(40, '0')}` as const],
  ])('%s is no token and gets 404', async (_what, addressOf) => {
    await expect(ask('/v1/paid/chain/token', { address: addressOf() })).rejects.toBeInstanceOf(NotFound);
  });
});

describe('chain/tx', () => {
  interface Tx {
    status: string;
    block: number | null;
    at: number | null;
    from: string;
    to: string | null;
    contractCreated: string | null;
    kind: string;
    valueUsdc: string;
    gasUsed: number | null;
    feeUsdc: string | null;
    feeWei: string | null;
    valueWei: string;
    final: boolean;
    confirmations: number;
    asOfBlock: number;
    nonce: number;
    gasLimit: number;
    maxFeePerGas: { wei: string };
    maxPriorityFeePerGas: { wei: string } | null;
    gasPrice: { wei: string } | null;
    tip: { wei: string } | null;
    method: { selector: string; name: string | null } | null;
    pending: { heldBy: string[] | null; accountNonce: number; nextBaseFee: { wei: string }; asOfBlock: number } | null;
    transfers: {
      token: string;
      symbol: string | null;
      from: string;
      to: string;
      amount: string | null;
      amountRaw: string;
      logIndex: number;
    }[];
  }
  const read = async (hash: Hex) => await ask<Tx>('/v1/paid/chain/tx', { hash });

  /** Checks a transaction's reply against its receipt and block. */
  async function checkMined(hash: Hex, reply: Tx): Promise<Receipt> {
    const receipt = await chainNode.rpc<Receipt>('eth_getTransactionReceipt', [hash]);
    expect(reply.status).toBe(receipt.status === '0x1' ? 'success' : 'reverted');
    expect(reply.block).toBe(Number(receipt.blockNumber));
    expect(reply.at).toBe(Number((await blockAt(Number(receipt.blockNumber))).timestamp));
    expect(reply.gasUsed).toBe(Number(receipt.gasUsed));
    const fee = BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice);
    expect([reply.feeWei, reply.feeUsdc]).toEqual([String(fee), usdcCost(fee)]);
    const baseFee = BigInt((await blockAt(Number(receipt.blockNumber))).baseFeePerGas);
    expect(reply.gasPrice!.wei).toBe(String(BigInt(receipt.effectiveGasPrice)));
    expect(reply.tip!.wei).toBe(String(BigInt(receipt.effectiveGasPrice) - baseFee));
    expect([reply.final, reply.pending]).toEqual([true, null]);
    expect(reply.confirmations).toBe(reply.asOfBlock - Number(receipt.blockNumber) + 1);
    const sent = await chainNode.rpc<Sent>('eth_getTransactionByHash', [hash]);
    expect([reply.nonce, reply.gasLimit]).toEqual([Number(sent.nonce), Number(sent.gas)]);
    expect(reply.maxFeePerGas.wei).toBe(String(BigInt(sent.maxFeePerGas)));
    expect(reply.maxPriorityFeePerGas!.wei).toBe(String(BigInt(sent.maxPriorityFeePerGas)));
    expect(reply.from).toBe(holder.toLowerCase());
    return receipt;
  }

  test('lists a USDC transfer once, although the chain logs it twice', async () => {
    const hash = await send({ to: chainNode.usdc, data: transfer(recipient, 2_500_000n) });
    const reply = await read(hash);
    const { logs } = await checkMined(hash, reply);
    expect(logs).toHaveLength(2);
    expect(reply.kind).toBe('tokenTransfer');
    expect(reply.method).toMatchObject({ selector: '0xa9059cbb', name: 'transfer' });
    expect(reply.transfers).toEqual([
      {
        token: chainNode.usdc,
        symbol: 'USDC',
        decimals: 6,
        from: holder.toLowerCase(),
        to: recipient.toLowerCase(),
        amount: '2.5',
        amountRaw: '2500000',
        logIndex: Number(logs[1]!.logIndex),
      },
    ]);
  });

  test('names a token transfer, a native transfer and a deployment as what they are', async () => {
    const tokenHash = await send({ to: token, data: transfer(recipient, 12_345_678n) });
    const moved = await read(tokenHash);
    await checkMined(tokenHash, moved);
    expect(moved.transfers).toMatchObject([{ token: token.toLowerCase(), symbol: 'TST', amount: '0.12345678' }]);

    const nativeHash = await send({ to: recipient, value: '0xde0b6b3a7640001' });
    const sent = await read(nativeHash);
    await checkMined(nativeHash, sent);
    expect(sent).toMatchObject({
      kind: 'nativeTransfer',
      valueUsdc: '1',
      valueWei: '1000000000000000001',
      to: recipient.toLowerCase(),
    });

    const deployHash = await send({ data: '0x60016000f3' });
    const created = await read(deployHash);
    const { contractAddress } = await checkMined(deployHash, created);
    expect(created).toMatchObject({ kind: 'deploy', to: null, contractCreated: contractAddress!.toLowerCase() });
  });

  test('shows the fee and no transfer of a transaction that reverted', async () => {
    const hash = await send({ to: token, data: transfer(recipient, 10n ** 30n), gas: '0x186a0' });
    const reply = await read(hash);
    await checkMined(hash, reply);
    expect(reply).toMatchObject({ status: 'reverted', transfers: [] });
  });

  test('is pending until the transaction is mined, and 404 for an unknown hash', async () => {
    await chainNode.pauseMining();
    const hash = await chainNode.rpc<Hex>('eth_sendTransaction', [
      { from: holder, to: recipient, value: '0x1', ...AMPLE_FEE },
    ]);
    expect(await read(hash)).toMatchObject({
      status: 'pending',
      block: null,
      at: null,
      gasUsed: null,
      feeUsdc: null,
      feeWei: null,
    });
    const { pending, nonce, final, confirmations } = await read(hash);
    expect([final, confirmations]).toEqual([false, 0]);
    const newest = await blockAt('latest');
    expect(pending).toMatchObject({ heldBy: [], accountNonce: nonce, asOfBlock: Number(newest.number) });
    expect(pending!.accountNonce).toBe(Number(await quantity('eth_getTransactionCount', [holder, 'latest'])));
    await chainNode.mine();
    await checkMined(hash, await read(hash));
    await chainNode.resumeMining();
    await expect(read(`0x${'ab'.repeat(32)}`)).rejects.toBeInstanceOf(NotFound);
  });

  test('says what keeps a pending transaction: a nonce that is missing, a fee that is too low; what was replaced is 404', async () => {
    await chainNode.pauseMining();
    const next = await quantity('eth_getTransactionCount', [holder, 'latest']);
    const queue = (nonce: bigint, maxFeePerGas: string) =>
      chainNode.rpc<Hex>('eth_sendTransaction', [
        {
          from: holder,
          to: recipient,
          value: '0x1',
          gas: '0x5208',
          nonce: `0x${nonce.toString(16)}`,
          maxFeePerGas,
          maxPriorityFeePerGas: '0x0',
        },
      ]);
    const later = await queue(next + 2n, AMPLE_FEE.maxFeePerGas);
    expect((await read(later)).pending).toMatchObject({ heldBy: ['nonceGap'], accountNonce: Number(next) });
    // The newest block asks for 40 gwei. The node, which would refuse the transaction for it, is told another fee.
    const setFee = (wei: bigint) => chainNode.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${wei.toString(16)}`]);
    await setFee(40n * 10n ** 9n);
    await chainNode.rpc('evm_mine', []);
    await setFee(20n * 10n ** 9n);
    const cheap = await queue(next, `0x${(25n * 10n ** 9n).toString(16)}`);
    const held = await read(cheap);
    expect(held.pending).toMatchObject({ heldBy: ['feeTooLow'], accountNonce: Number(next) });
    expect(BigInt(held.pending!.nextBaseFee.wei)).toBeGreaterThan(25n * 10n ** 9n);
    const paying = await queue(next, AMPLE_FEE.maxFeePerGas);
    const between = await queue(next + 1n, AMPLE_FEE.maxFeePerGas);
    await chainNode.mine();
    for (const hash of [paying, between, later]) await checkMined(hash, await read(hash));
    await expect(read(cheap)).rejects.toBeInstanceOf(NotFound);
    await chainNode.resumeMining();
  });
});
