import { afterEach, describe, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../../src/chain/rpc/client.ts';
import { createChainCheck } from '../../../../src/payment/usdc/checks.ts';
import { createEvidence } from '../../../../src/payment/usdc/evidence.ts';
import { openClient } from '../../../support/chain/client.ts';
import { RpcFault } from '../../../support/chain/rpc-server.ts';
import { USDC } from '../../../support/usdc/payments.ts';
import { randomAuthorization, startTokenNode, type TokenNode } from '../../../support/usdc/token-node.ts';

// One of three providers answers so that its answer could pass alone, or so that a true one cannot be read.

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function world(): Promise<{ liar: TokenNode; honest: readonly TokenNode[]; chain: OpenChainClient }> {
  const nodes = await Promise.all([startTokenNode(), startTokenNode(), startTokenNode()]);
  const [liar, ...honest] = nodes;
  if (!liar) throw new Error('no node');
  for (const { server } of nodes) server.methods.eth_blockNumber = () => '0x64';
  const rpcUrls = nodes.map(({ server }) => server.url);
  const chain = openClient({ rpcUrls, chainId: 5042, timeoutMs: 60_000 });
  closing.push(
    ...nodes.map(
      ({ server }) =>
        () =>
          server.stop(),
    ),
    () => chain.close(),
  );
  await chain.watch();
  return { liar, honest, chain };
}

/** An authorization that every node shows as paid, by the same transaction. */
function paid(nodes: readonly TokenNode[]) {
  const authorization = randomAuthorization();
  const [first, ...others] = nodes;
  const receipt = first?.pay(authorization);
  for (const node of others) Object.assign(node, node.pay(authorization));
  for (const { server } of nodes) {
    const logs = first?.server.methods.eth_getLogs;
    server.methods.eth_getLogs = (params) => logs?.(params);
    server.methods.eth_getTransactionReceipt = () => receipt;
  }
  return authorization;
}

describe('a paid authorization', () => {
  test('has not expired because one provider says so while the others cannot read the state', async () => {
    const { liar, honest, chain } = await world();
    const authorization = { ...paid([liar, ...honest]), validBefore: 1n };
    liar.server.methods.eth_getBlockByNumber = () => ({ number: 'nonsense' });
    liar.server.methods.eth_call = () => `0x${'0'.repeat(64)}`;
    for (const { server } of honest)
      server.methods.eth_call = () => {
        throw new RpcFault(-32000, 'missing trie node');
      };
    const found = await createEvidence(chain, USDC)
      .lookup(authorization, 1, { atBlock: 100 })
      .catch(() => ({ kind: 'unreadable' }));
    expect(['unknown', 'unreadable']).toContain(found.kind);
  });

  test.each<[string, (liar: TokenNode) => void]>([
    [
      'refuses logs',
      ({ server }) => {
        server.methods.eth_getLogs = () => {
          throw new RpcFault(-32000, 'no logs here');
        };
      },
    ],
    [
      'answers logs with nonsense',
      ({ server }) => {
        server.methods.eth_getLogs = () => ({});
      },
    ],
    [
      'writes its receipt so that it cannot be read',
      ({ server }) => {
        const receipt = server.methods.eth_getTransactionReceipt;
        server.methods.eth_getTransactionReceipt = (params) => ({ ...(receipt?.(params) as object), status: '0x01' });
      },
    ],
    [
      'writes the state so that it cannot be read',
      ({ server }) => {
        const state = server.methods.eth_call;
        server.methods.eth_call = (params) => String(state?.(params)).replace('0x', '0X');
      },
    ],
  ])('is found although one provider %s', async (_, lie) => {
    const { liar, honest, chain } = await world();
    const authorization = paid([liar, ...honest]);
    lie(liar);
    expect(await createEvidence(chain, USDC).lookup(authorization, 1)).toMatchObject({
      kind: 'settled',
      paid: authorization.value,
    });
  });

  test.each([0n, 2n ** 40n])(
    'is searched from the head that two providers agree on, although one provider reads a payer at block %s',
    async (block) => {
      const { liar, honest, chain } = await world();
      for (const { server } of [liar, ...honest]) server.methods.eth_blockNumber = () => '0x7d0';
      await chain.agreed.head();
      const word = (value: bigint) => value.toString(16).padStart(64, '0');
      // Answered, unused, and a balance of 9.
      liar.server.methods.eth_call = () => `0x${word(block)}${word((9n << 8n) | 1n)}`;
      const check = createChainCheck(chain, USDC, () => USDC);
      const reading = await check.read(randomAuthorization(), new AbortController().signal);
      expect(reading).toMatchObject({ balance: 9n, block: 800 });
    },
  );
});
