import { keccak256, stringToHex, toFunctionSelector } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { accountCodeCalls, BEACON_SELECTOR, PROXY_SLOTS, readAccountCode } from '../../../src/chain/contracts.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';

const BLOCK = 1000;
const ACCOUNT = `0x${'0a'.repeat(20)}`;
const [TARGET, OTHER, BEACON] = ['1b', '2c', '3d'].map((byte) => `0x${byte.repeat(20)}`) as [string, string, string];
const word = (address: string) => `0x${address.slice(2).padStart(64, '0')}`;
const implementation = PROXY_SLOTS['eip1967.proxy.implementation'];
const beacon = PROXY_SLOTS['eip1967.proxy.beacon'];
const zeppelin = PROXY_SLOTS['org.zeppelinos.proxy.implementation'];

let node: RpcServer;
let chain: OpenChainClient;
let code: string;
let slots: Record<string, string>;
beforeEach(async () => {
  code = '0x6001';
  slots = {};
  node = await startRpcServer({
    eth_getCode: () => code,
    eth_getStorageAt: ([, slot]) => slots[String(slot)] ?? word('0x'),
    eth_call: ([call]) => {
      const { to, data } = call as { to: string; data: string };
      return to === BEACON && data === BEACON_SELECTOR ? word(TARGET) : '0x';
    },
  });
  chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 60_000 });
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

async function read(signal?: AbortSignal) {
  const outcomes = await chain.batch(accountCodeCalls(ACCOUNT, BLOCK), {});
  return readAccountCode(chain, outcomes, BLOCK, signal ? { signal } : {});
}
const minimal = `0x363d3d373d3d3d363d73${TARGET.slice(2)}5af43d82803e903d91602b57fd5bf3`;

test('the slots and the selector are those of their standards', () => {
  const less = (name: string, by: bigint) => `0x${(BigInt(keccak256(stringToHex(name))) - by).toString(16)}`;
  expect(PROXY_SLOTS).toEqual({
    'eip1967.proxy.implementation': less('eip1967.proxy.implementation', 1n),
    'eip1967.proxy.beacon': less('eip1967.proxy.beacon', 1n),
    'org.zeppelinos.proxy.implementation': less('org.zeppelinos.proxy.implementation', 0n),
  });
  expect(BEACON_SELECTOR).toBe(toFunctionSelector('function implementation()'));
});

describe('whose code an account runs', () => {
  test.each<[string, string, Record<string, string>, object | null]>([
    ['a wallet without code', '0x', { [implementation]: word(TARGET) }, null],
    ['a contract with empty slots', '0x6001', {}, null],
    ['a slot that holds a number', '0x6001', { [implementation]: `0x${'ff'.repeat(32)}` }, null],
    ['a delegating wallet', `0xEF0100${TARGET.slice(2)}`, {}, { standard: 'EIP-7702', target: TARGET }],
    ['a longer code that begins like a delegation', `0xef0100${TARGET.slice(2)}00`, {}, null],
    ['a minimal proxy', minimal, { [implementation]: word(OTHER) }, { standard: 'EIP-1167', target: TARGET }],
    ['a longer code that begins like a minimal proxy', `${minimal}00`, {}, null],
    [
      'EIP-1967 before the other slots',
      '0x6001',
      { [implementation]: word(TARGET), [zeppelin]: word(OTHER), [beacon]: word(BEACON) },
      { standard: 'EIP-1967', target: TARGET },
    ],
    ['ZeppelinOS', '0x6001', { [zeppelin]: word(TARGET) }, { standard: 'ZeppelinOS', target: TARGET }],
  ])('%s', async (_what, itsCode, itsSlots, expected) => {
    code = itsCode;
    slots = itsSlots;
    const { proxy } = await read();
    expect(proxy).toEqual(expected && { ...expected, beacon: null });
    expect(node.bodies.flat().filter((body) => (body as { method: string }).method === 'eth_call')).toEqual([]);
  });

  test('a beacon is asked for its target at the same block', async () => {
    slots = { [beacon]: word(BEACON) };
    expect((await read()).proxy).toEqual({ standard: 'EIP-1967 beacon', target: TARGET, beacon: BEACON });
    const asked = node.bodies.flat().at(-1) as { params: unknown[] };
    expect(asked.params[1]).toBe('0x3e8');
  });

  test('a beacon that names no target leaves it null, as does a node that is away by then', async () => {
    slots = { [beacon]: word(OTHER) };
    expect((await read()).proxy).toEqual({ standard: 'EIP-1967 beacon', target: null, beacon: OTHER });
    const outcomes = await chain.batch(accountCodeCalls(ACCOUNT, BLOCK), {});
    node.fault = '500';
    const { proxy } = await readAccountCode(chain, outcomes, BLOCK, {});
    expect(proxy).toEqual({ standard: 'EIP-1967 beacon', target: null, beacon: OTHER });
    await expect(readAccountCode(chain, outcomes, BLOCK, { signal: AbortSignal.abort() })).rejects.toThrow('abort');
  });

  test('a node without storage leaves the proxy unknown, and one without code leaves both', async () => {
    node.methods.eth_getStorageAt = () => {
      throw new RpcFault(-32000, 'no state');
    };
    expect(await read()).toEqual({ code: '0x6001', proxy: undefined });
    code = minimal;
    expect((await read()).proxy).toMatchObject({ standard: 'EIP-1167' });
    node.methods.eth_getCode = () => 'nonsense';
    expect(await read()).toEqual({ code: null, proxy: undefined });
  });
});
