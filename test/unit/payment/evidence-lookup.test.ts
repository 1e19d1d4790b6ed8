import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { createChainClient } from '../../../src/chain/client.ts';
import { createEvidence } from '../../../src/payment/usdc/evidence.ts';
import { USDC } from '../../support/payments.ts';
import { RpcFault, startRpcServer } from '../../support/rpc-server.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const now = Math.floor(Date.now() / 1000);
const expired = {
  from: randomBytes(20),
  to: randomBytes(20),
  value: 1000n,
  validAfter: 0n,
  validBefore: BigInt(now - 1),
  nonce: randomBytes(32),
  signature: randomBytes(65),
};
const head = () => ({ number: '0x64', timestamp: `0x${now.toString(16)}` });
const unused = `0x${'0'.repeat(64)}`;

async function lookup(...nodes: Parameters<typeof startRpcServer>[0][]) {
  const servers = await Promise.all(
    nodes.map((methods) => startRpcServer({ eth_chainId: () => '0x13b2', ...methods })),
  );
  const chain = createChainClient({ rpcUrls: servers.map(({ url }) => url), chainId: 5042, timeoutMs: 1000 });
  closing.push(() => chain.close(), ...servers.map((server) => () => server.stop()));
  return createEvidence(chain, USDC).lookup(expired, 1);
}

test('an authorization that ran out unused has failed', async () => {
  expect(await lookup({ eth_getBlockByNumber: head, eth_call: () => unused })).toMatchObject({ kind: 'failed' });
});

test('the header of one node and the state of another that lags behind it prove nothing', async () => {
  const limited = () => {
    throw new RpcFault(-32011, 'request limit reached');
  };
  // It knows nothing of block 100; asked for the latest it would tell of a time before the transfer.
  const lagging = ([, block]: unknown[]) => {
    if (block !== 'latest') throw new RpcFault(-32000, 'header not found');
    return unused;
  };
  const verdict = lookup({ eth_getBlockByNumber: head, eth_call: limited }, { eth_call: lagging });
  expect(await verdict.catch(() => 'unreadable')).toBe('unreadable');
});
