import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { createPayerReader } from '../../../src/payment/usdc/payer-reads.ts';
import { openClient } from '../../support/chain/client.ts';
import { type RpcProxy, startRpcProxy } from '../../support/chain/rpc-proxy.ts';
import { newBuyer } from '../../support/usdc/buyer.ts';
import { newOutsider } from '../../support/usdc/outsider.ts';
import { newKey, signAuthorization } from '../../support/usdc/payments.ts';

const STAYS = new AbortController().signal;
let network: EmbeddedNetwork;
let proxy: RpcProxy;
let chain: OpenChainClient;
let requests = 0;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  proxy = await startRpcProxy(network.rpcUrl);
  chain = openClient({ rpcUrls: [proxy.url], chainId: network.chainId, timeoutMs: 10_000 });
  // The client asks for the chain's identity once, before anything else.
  await chain.request('eth_blockNumber', []);
});
afterAll(async () => {
  await chain.close();
  await proxy.stop();
  await network.stop();
});
beforeEach(() => {
  requests = 0;
  proxy.rule(({ index }) => {
    if (index === 0) requests++;
    return undefined;
  });
});

/** A node that accepts no call without `to`. */
function refuseTogether(): void {
  proxy.rule(({ method, params, index }) => {
    if (index === 0) requests++;
    const [call] = params as [{ to?: string } | undefined];
    const refused = method === 'eth_call' && call?.to === undefined;
    return refused ? { error: { code: -32602, message: 'missing field `to`' } } : undefined;
  });
}

const reader = (usdc = network.usdc) => createPayerReader(chain, usdc);
const nonceOf = () => randomBytes(32);

/** Buyers and a smart wallet, each with its own balance. Some have used an authorization. */
async function newPayers() {
  const wallet = await network.deploy('SmartWallet', [newKey().address]);
  await network.fundUsdc(wallet, 77n);
  const spender = await newBuyer(network, 1_000n);
  const requirement = {
    scheme: 'exact',
    network: `eip155:${network.chainId}`,
    amount: '400',
    asset: network.usdc,
    payTo: network.seller,
    maxTimeoutSeconds: 3600,
    extra: {},
  };
  const spent = signAuthorization(spender.privateKey, requirement);
  await (await newOutsider(network)).submit(spent);
  const from = hexToBytes(spender.address);
  return [
    { payer: { from: hexToBytes(wallet), nonce: nonceOf() }, used: false, balance: 77n, hasCode: true },
    { payer: { from, nonce: spent.nonce }, used: true, balance: 600n, hasCode: false },
    { payer: { from, nonce: nonceOf() }, used: false, balance: 600n, hasCode: false },
    { payer: { from: randomBytes(20), nonce: spent.nonce }, used: false, balance: 0n, hasCode: false },
  ];
}

describe.each([
  ['in one call', () => {}],
  ['where the node takes no such call', refuseTogether],
])('payers read %s', (_, arrange) => {
  test('are reported separately: used or not, with code or without, each with its balance', async () => {
    const payers = await newPayers();
    arrange();
    const head = Number(await network.rpc<string>('eth_blockNumber', []));
    const read = reader();
    const readings = await Promise.all(payers.map(({ payer }) => read(payer, STAYS)));
    expect(readings.map(({ block: __, ...rest }) => rest)).toEqual(payers.map(({ payer: __, ...rest }) => rest));
    const blocks = new Set(readings.map(({ block }) => block));
    expect(blocks.size).toBe(1);
    for (const block of blocks) expect(block - head).toSatisfy((ahead: number) => ahead >= 0 && ahead < 20);
  });
});

test('300 payers at once cost a handful of requests, and each gets its own answer', async () => {
  const payers = Array.from({ length: 300 }, (_, at) => ({ from: randomBytes(20), nonce: nonceOf(), at }));
  for (const { from, at } of payers.filter(({ at }) => at % 50 === 0)) {
    await network.fundUsdc(bytesToHex(from), BigInt(at + 1));
  }
  requests = 0;
  const read = reader();
  const readings = await Promise.all(payers.map((payer) => read(payer, STAYS)));
  expect(readings.map(({ balance }) => balance)).toEqual(payers.map(({ at }) => (at % 50 === 0 ? BigInt(at + 1) : 0n)));
  expect(requests).toBe(2);
});

// The token's code: revert (0xfd), or an invalid opcode, which burns all gas (0xfe).
test.each([
  ['reverts', 'fd'],
  ['burns all gas', 'fe'],
])('a token that %s for one payer fails for that one only', async (_, end) => {
  const [good, bad] = [randomBytes(20), randomBytes(20)];
  const token = bytesToHex(randomBytes(20));
  // calldataload(4) == bad ? jump to the end : return 7
  const code = `0x60043573${bad.toString('hex')}1460245760075f5260205ff35b5f5f${end}`;
  await network.rpc('anvil_setCode', [token, code]);
  const read = reader(token);
  const nonce = nonceOf();
  const [first, second, third] = await Promise.allSettled([
    read({ from: good, nonce }, STAYS),
    read({ from: bad, nonce }, STAYS),
    read({ from: good, nonce }, STAYS),
  ]);
  expect(first).toMatchObject({ status: 'fulfilled', value: { balance: 7n, used: true } });
  expect(second).toMatchObject({ status: 'rejected', reason: expect.any(UpstreamFailed) });
  expect(third).toMatchObject({ status: 'fulfilled', value: { balance: 7n, used: true } });
  expect(requests).toBe(1);
});

test('without a token, no payer is reported as having no balance', async () => {
  const read = reader(bytesToHex(randomBytes(20)));
  await expect(read({ from: randomBytes(20), nonce: nonceOf() }, STAYS)).rejects.toBeInstanceOf(UpstreamFailed);
});
