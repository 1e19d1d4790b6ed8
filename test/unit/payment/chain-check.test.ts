import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createChainClient, type OpenChainClient } from '../../../src/chain/client.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { type ChainCheck, createChainCheck } from '../../../src/payment/usdc/chain-check.ts';
import { USDC } from '../../support/payments.ts';
import { type RpcServer, startRpcServer } from '../../support/rpc-server.ts';

let node: RpcServer;
let chain: OpenChainClient;
let check: ChainCheck;
beforeEach(async () => {
  node = await startRpcServer();
  chain = createChainClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 2000 });
  check = createChainCheck(chain, USDC, `0x${'aa'.repeat(20)}`);
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

const STAYS = new AbortController().signal;
const newAuthorization = () => ({
  from: randomBytes(20),
  to: randomBytes(20),
  nonce: randomBytes(32),
  value: 500n,
  validAfter: 0n,
  validBefore: 2n ** 40n,
  signature: randomBytes(65),
});
const answer = (block: bigint, flags: bigint) => () =>
  `0x${[block, (500n << 8n) | flags].map((value) => value.toString(16).padStart(64, '0')).join('')}`;

test.each([
  [5000n, 3800],
  [1200n, 0],
  [7n, 0],
])('a reading at block %i is good up to block %i, for nodes of another height', async (block, upTo) => {
  node.methods.eth_call = answer(block, 1n);
  expect(await check.read(newAuthorization(), STAYS)).toEqual({
    used: false,
    balance: 500n,
    hasCode: false,
    block: upTo,
  });
});

test('two payers at once cost one request, and the one who leaves meanwhile does not end it for the other', async () => {
  const leaver = new AbortController();
  node.methods.eth_call = () => {
    leaver.abort(new Error('gone'));
    return `${answer(5000n, 1n)()}${answer(0n, 3n)().slice(2 + 64)}`;
  };
  const reads = [check.read(newAuthorization(), leaver.signal), check.read(newAuthorization(), STAYS)];
  const [first, second] = await Promise.allSettled(reads);
  expect(first).toMatchObject({ status: 'rejected', reason: { message: 'gone' } });
  expect(second).toMatchObject({ status: 'fulfilled', value: { used: true } });
  expect(node.count('eth_call')).toBe(1);
});

test('a chain that does not answer is an upstream failure, and refuses nobody', async () => {
  node.fault = '500';
  await expect(check.read(newAuthorization(), STAYS)).rejects.toBeInstanceOf(UpstreamFailed);
});
