import { encodeAbiParameters, keccak256, stringToHex } from 'viem';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { knownContract, labelContracts } from '../../../src/chain/contracts.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { createDescribeCode } from '../../../src/collector/labels.ts';
import { createDeployReads } from '../../../src/collector/store/accounts.ts';
import { account, emptyChainDatabase, hash, toHex } from '../../support/chain/chain-rows.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

const MULTICALL = '0xca11bde05977b3631167028862be2a173976ca11' as const;
const SLOT = `0x${(BigInt(keccak256(stringToHex('eip1967.proxy.implementation'))) - 1n).toString(16)}`;
const text = (value: string) => encodeAbiParameters([{ type: 'string' }], [value]);
const at = (value: number) => toHex(account(value));

let node: RpcServer;
let chain: OpenChainClient;
let symbols: Record<string, string>;
let slots: Record<string, string>;
beforeEach(async () => {
  symbols = {};
  slots = {};
  node = await startRpcServer({
    eth_getStorageAt: ([address, slot]) => (slot === SLOT && slots[String(address)]) || `0x${'0'.repeat(64)}`,
    eth_call: ([call]) => {
      const { to, data } = call as { to: string; data: string };
      const symbol = symbols[to];
      if (symbol === undefined || data !== '0x95d89b41') throw new RpcFault(3, 'execution reverted');
      return symbol;
    },
  });
  chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 60_000 });
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

const label = async (address: `0x${string}`, code: `0x${string}` = '0x6001') =>
  (await labelContracts(chain, [{ address, code }], {}))[0]!.text;

test('labels name known contracts, proxies of both kinds and symbols, and are null for any other contract', async () => {
  slots[at(2)] = `0x${'0'.repeat(24)}${MULTICALL.slice(2)}`;
  symbols[at(2)] = text('TWO');
  symbols[at(3)] = text('THREE');
  expect(await label(MULTICALL)).toBe('Multicall3');
  expect(await label(at(1), `0x363d3d373d3d3d363d73${at(9).slice(2)}5af43d82803e903d91602b57fd5bf3`)).toBe(
    `minimal proxy to ${at(9)}`,
  );
  expect(await label(at(2))).toBe(`proxy to ${MULTICALL} (Multicall3), token "TWO"`);
  expect(await label(at(3))).toBe('token "THREE"');
  expect(await label(at(4))).toBeNull();
  expect(await label(at(3), '0x')).toBeNull();
});

test('kinds do not follow from what a contract calls itself, and code that was read before is not needed for them', async () => {
  slots[at(2)] = `0x${'0'.repeat(24)}${MULTICALL.slice(2)}`;
  symbols[at(3)] = text(`proxy to ${MULTICALL}`);
  const clone = `0x363d3d373d3d3d363d73${at(9).slice(2)}5af43d82803e903d91602b57fd5bf3` as const;
  const labels = await labelContracts(
    chain,
    [
      { address: at(1), code: clone },
      { address: at(2), code: null },
      { address: at(3), code: null },
      { address: at(4), code: '0x' },
    ],
    {},
  );
  expect(labels.map(({ isToken, isProxy }) => [isToken, isProxy])).toEqual([
    [false, true],
    [false, true],
    [true, false],
    [false, false],
  ]);
});

test('a contract whose call the node refuses gets no label, and does not affect other labels', async () => {
  node.methods.eth_call = ([call]) => {
    if ((call as { to: string }).to === at(5)) throw new RpcFault(-32000, 'execution timeout');
    return text('FINE');
  };
  const labels = await labelContracts(
    chain,
    [5, 6].map((value) => ({ address: at(value), code: '0x6001' })),
    {},
  );
  expect(labels).toEqual([
    { text: null, isToken: false, isProxy: false },
    { text: 'token "FINE"', isToken: true, isProxy: false },
  ]);
  node.fault = '500';
  await expect(label(at(6))).rejects.toThrow('no provider answered');
});

test('a known contract has its name on its own chain only', () => {
  expect(knownContract(5042, '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1')).toBe('EURC');
  expect(knownContract(5042002, '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1')).toBeNull();
  expect(knownContract(1, MULTICALL)).toBeNull();
});

test('a label names another contract with the same code, from the database or from the same batch, and never the contract itself', async () => {
  const db = emptyChainDatabase();
  db.prepare('INSERT INTO deploys VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)').run(
    7,
    70,
    account(0x77),
    account(1),
    hash(7),
    2,
    hash(0xc0),
  );
  db.prepare('INSERT INTO deploys VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)').run(
    8,
    80,
    account(0x78),
    account(1),
    hash(8),
    2,
    hash(0xc0),
  );
  const describe = createDescribeCode(createDeployReads(db));
  const entry = (value: number, code: `0x${string}`, codeHash: number) => ({
    address: at(value),
    code,
    codeHash: toHex(hash(codeHash)),
  });
  const labels = await describe(
    [
      entry(0x12, '0x6002', 0xd0),
      entry(0x77, '0x6001', 0xc0),
      entry(0x11, '0x6002', 0xd0),
      entry(0x10, '0x6001', 0xc0),
      entry(0x13, '0x', 0xe0),
    ],
    chain,
    new AbortController().signal,
  );
  expect(labels.map((described) => described.label)).toEqual([
    `same code as ${at(0x11)}`,
    `same code as ${at(0x78)}`,
    null,
    `same code as ${at(0x77)}`,
    null,
  ]);
});
