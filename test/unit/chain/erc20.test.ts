import { encodeAbiParameters } from 'viem';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SELECTORS } from '../../../src/chain/contracts.ts';
import { balanceCall, readBalance, readTokens, readTokenWithSupply, tokenCalls } from '../../../src/chain/erc20.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

type View = string | (() => never);
const text = (value: string) => encodeAbiParameters([{ type: 'string' }], [value]);
const number = (value: bigint) => `0x${value.toString(16).padStart(64, '0')}`;
const reverts = () => {
  throw new RpcFault(3, 'execution reverted');
};
const address = (end: string) => `0x${end.padStart(40, '0')}` as const;
const GOOD = address('aa');

let node: RpcServer;
let chain: OpenChainClient;
/** What each contract answers, by selector. An address that is missing here has no contract and answers "0x". */
let contracts: Record<string, Record<string, View>>;

beforeEach(async () => {
  contracts = { [GOOD]: { 'name()': text('Good Token'), 'symbol()': text('GOOD'), 'decimals()': number(6n) } };
  node = await startRpcServer({
    eth_call: (params) => {
      const [{ to, data }] = params as [{ to: string; data: string }];
      const signature = Object.entries(SELECTORS).find(([, selector]) => data.startsWith(selector))?.[0] ?? '';
      const answer = contracts[to]?.[signature] ?? '0x';
      return typeof answer === 'string' ? answer : answer();
    },
  });
  chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 60_000 });
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

test('many tokens are read in one batch, in the order asked, at the pinned block', async () => {
  contracts[address('bb')] = { 'name()': text('B'), 'symbol()': text('BB'), 'decimals()': number(18n) };
  const tokens = await readTokens(chain, [address('bb'), GOOD, address('cc'), GOOD], 77, {});
  expect(tokens.map((token) => token?.symbol ?? null)).toEqual(['BB', 'GOOD', null, 'GOOD']);
  const batches = node.bodies.filter(Array.isArray);
  expect(batches).toHaveLength(1);
  expect(batches[0]).toHaveLength(9);
  expect(JSON.stringify(batches[0])).toContain('"0x4d"');
});

test('bytes32 names, missing functions and reverts are tolerated', async () => {
  contracts[address('01')] = {
    'name()': `0x${Buffer.from('Maker').toString('hex').padEnd(64, '0')}`,
    'symbol()': reverts,
  };
  contracts[address('02')] = { 'symbol()': text('NODEC'), 'decimals()': reverts, 'name()': reverts };
  contracts[address('03')] = { 'decimals()': number(256n), 'symbol()': text('BIG') };
  contracts[address('04')] = { 'name()': reverts, 'symbol()': reverts, 'decimals()': reverts };
  expect(await readTokens(chain, ['01', '02', '03', '04'].map(address), 1, {})).toEqual([
    { address: address('01'), name: 'Maker', symbol: null, decimals: null },
    { address: address('02'), name: null, symbol: 'NODEC', decimals: null },
    { address: address('03'), name: null, symbol: 'BIG', decimals: null },
    null,
  ]);
});

test.each([
  [-32603, 'EVM error InvalidFEOpcode'],
  [-32000, 'out of gas'],
  [-32000, 'stack underflow'],
  [-32003, 'halted'],
])('error %i "%s" comes from the contract and is read as no answer', async (code, message) => {
  contracts[GOOD]!['name()'] = () => {
    throw new RpcFault(code, message);
  };
  expect((await readTokens(chain, [GOOD], 1, {}))[0]).toMatchObject({ name: null, symbol: 'GOOD' });
});

test.each([
  [-32601, 'method not supported'],
  [-32000, 'header not found'],
  [-32603, 'internal error'],
  [-32602, 'invalid params'],
])('error %i "%s" comes from the node: 502, never "no such token"', async (code, message) => {
  contracts[GOOD]!['name()'] = () => {
    throw new RpcFault(code, message);
  };
  await expect(readTokens(chain, [GOOD], 1, {})).rejects.toBeInstanceOf(UpstreamFailed);
});

test('a complete answer is kept for an hour of blocks, an incomplete one is not', async () => {
  contracts[address('01')] = { 'symbol()': text('HALF') };
  const asked = () => node.count('eth_call');
  await readTokens(chain, [GOOD, address('01'), address('02')], 1000, {});
  await readTokens(chain, [GOOD, address('01'), address('02')], 8000, {});
  expect(asked()).toBe(9 + 6);
  contracts[GOOD]!['symbol()'] = text('NEW');
  expect((await readTokens(chain, [GOOD], 8199, {}))[0]?.symbol).toBe('GOOD');
  expect((await readTokens(chain, [GOOD], 8200, {}))[0]?.symbol).toBe('NEW');
});

test('the supply and the ERC-721 question are read at once and never kept', async () => {
  contracts[GOOD]!['totalSupply()'] = number(5n);
  expect(readTokenWithSupply(GOOD, await chain.batch(tokenCalls(GOOD, 1)))).toMatchObject({
    symbol: 'GOOD',
    totalSupply: 5n,
    isErc721: false,
  });
  contracts[GOOD]!['totalSupply()'] = number(6n);
  contracts[GOOD]!['supportsInterface(bytes4)'] = number(1n);
  expect(readTokenWithSupply(GOOD, await chain.batch(tokenCalls(GOOD, 1)))).toMatchObject({
    totalSupply: 6n,
    isErc721: true,
  });
  expect(readTokenWithSupply(address('02'), await chain.batch(tokenCalls(address('02'), 1)))).toBeNull();
});

test('a balance is read for the owner at the block; an answer that is no number gives null', async () => {
  contracts[GOOD]!['balanceOf(address)'] = number(12n);
  const call = balanceCall(GOOD, address('0b'), 3);
  expect(call.params).toMatchObject([{ to: GOOD, data: `0x70a08231${'0b'.padStart(64, '0')}` }, '0x3']);
  expect(readBalance((await chain.batch([call]))[0])).toBe(12n);
  expect(readBalance((await chain.batch([balanceCall(address('cc'), GOOD, 3)]))[0])).toBeNull();
});
