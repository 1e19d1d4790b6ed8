import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { channelEvents } from '../../../src/payment/channels/calldata.ts';
import { createChannelReader } from '../../../src/payment/channels/channel.ts';
import type { MinedTransaction } from '../../../src/payment/settler.ts';
import { openClient } from '../../support/chain/client.ts';
import { createChannelStage } from '../../support/channels/channel-contract.ts';

// What we read of the settlement contract: its state and its events, on a real node.

let network: EmbeddedNetwork;
let stage: ReturnType<typeof createChannelStage>;
let chain: OpenChainClient;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  stage = createChannelStage(network);
  chain = openClient({ rpcUrls: [network.rpcUrl], chainId: network.chainId, timeoutMs: 60_000 });
  await network.fundUsdc(stage.payer.address, 1_000_000n);
});
afterAll(async () => {
  await chain?.close();
  await network?.stop();
});

/** The events of the chain's newest transaction to the contract. */
async function newest() {
  const block = await stage.chain.getBlock({ includeTransactions: true });
  for (let number = block.number; number > 0n; number--) {
    const { transactions } = await stage.chain.getBlock({ blockNumber: number });
    const hash = transactions.at(-1);
    if (!hash) continue;
    const receipt = await chain.request<MinedTransaction>('eth_getTransactionReceipt', [hash]);
    return channelEvents(receipt);
  }
  throw new Error('no transaction');
}

test('the state of many channels is read by one request at one block, and an unknown channel has zeros', async () => {
  const [rich, leaving, unknown] = [stage.config(), stage.config(), stage.config()];
  await stage.deposit(rich, 3000n);
  await stage.claim([{ config: rich, max: 700n, total: 500n }]);
  await stage.deposit(leaving, 2000n);
  await stage.call('refundWithSignature', [leaving, 100n, 0n, await stage.signRefund(leaving, 0n, 100n)]);
  await stage.call('initiateWithdraw', [leaving, 900n], await stage.walletOf(stage.payer));
  const ids = await Promise.all([rich, leaving, unknown].map(async (config) => hexToBytes(await stage.idOf(config))));
  let requests = 0;
  const counted = {
    ...chain,
    batch: (...args: Parameters<OpenChainClient['batch']>) => {
      requests++;
      return chain.batch(...args);
    },
  };
  const [first, second, third] = await createChannelReader(counted).read(ids);
  const NOTHING = { withdrawAmount: 0n, withdrawAt: 0, refundNonce: 0n };
  expect(first).toMatchObject({ balance: 3000n, totalClaimed: 500n, ...NOTHING });
  expect(second).toMatchObject({ balance: 1900n, totalClaimed: 0n, withdrawAmount: 900n, refundNonce: 1n });
  expect(second?.withdrawAt).toBeGreaterThan(1_600_000_000);
  expect(third).toMatchObject({ balance: 0n, totalClaimed: 0n, ...NOTHING });
  expect([requests, first?.block === third?.block, (first?.block ?? 0) > 0]).toEqual([1, true, true]);
  expect(await createChannelReader(chain).read([])).toEqual([]);
});

test('each claim, each sweep and each refund is read with its amounts, and the contract’s other events show nothing', async () => {
  const config = stage.config();
  const channelId = hexToBytes(await stage.idOf(config));
  await stage.deposit(config, 3000n);
  expect(await newest()).toEqual([]);
  await stage.claim([{ config, max: 700n, total: 500n }]);
  await stage.claim([{ config, max: 700n, total: 700n }]);
  expect(await newest()).toEqual([{ kind: 'Claimed', channelId, amount: 200n, totalClaimed: 700n }]);
  await stage.call('settle', [stage.receiver, network.usdc]);
  // It pays what was claimed of every channel since the last sweep.
  const [swept, ...more] = await newest();
  expect([swept?.kind, (swept?.amount ?? 0n) >= 700n, more]).toEqual(['Settled', true, []]);
  await stage.call('refundWithSignature', [config, 100n, 0n, await stage.signRefund(config, 0n, 100n)]);
  expect(await newest()).toEqual([{ kind: 'Refunded', channelId, amount: 100n }]);
});

test('a reverted transaction, another contract’s log and malformed data show nothing', () => {
  const address = '0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003';
  const id = bytesToHex(Buffer.alloc(32, 7));
  const word = (value: number) => value.toString(16).padStart(64, '0');
  const claimed = '0x36bd546bb573e8921fdbfd934bbed62d872796b01792cd240cce27f79dd3eddd';
  const log = { address, topics: [claimed, id, `0x${word(1)}`], data: `0x${word(5)}${word(9)}` };
  const found = [{ kind: 'Claimed', channelId: hexToBytes(id), amount: 5n, totalClaimed: 9n }];
  expect(channelEvents({ status: '0x1', logs: [log] })).toEqual(found);
  expect(channelEvents({ status: '0x0', logs: [log] })).toEqual([]);
  const others = [
    { ...log, address: `0x${'11'.repeat(20)}` },
    { ...log, data: '0x' },
    { ...log, topics: [claimed] },
    { ...log, topics: [] },
  ];
  expect(channelEvents({ status: '0x1', logs: others })).toEqual([]);
});
