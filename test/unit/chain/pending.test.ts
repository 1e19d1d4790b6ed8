import { expect, test } from 'vitest';
import { readPendingState, whatHolds } from '../../../src/chain/pending.ts';
import { openClient } from '../../support/chain/client.ts';
import { RpcFault, startRpcServer } from '../../support/chain/rpc-server.ts';

const sent = { nonce: 7, gas: 21_000, value: 1_000n, maxFeePerGas: 25n };
const account = { accountNonce: 7, balance: 1_000n + 21_000n * 25n };
const fees = { nextBaseFee: 25n, floor: 20n };

test('nothing holds a transaction that is next, pays the fee exactly and is covered exactly', () => {
  expect(whatHolds(sent, account, fees)).toEqual([]);
});

test.each([
  ['a nonce that was used', { nonce: 6 }, {}, {}, ['nonceUsed']],
  ['a nonce that was used, whatever else', { nonce: 6, maxFeePerGas: 1n }, { balance: 0n }, {}, ['nonceUsed']],
  ['lower nonces that are missing', { nonce: 8 }, {}, {}, ['nonceGap']],
  ['a maximum below the next base fee', { maxFeePerGas: 24n }, {}, {}, ['feeTooLow']],
  ['a maximum at the floor', { maxFeePerGas: 20n }, {}, {}, ['feeTooLow']],
  ['a maximum below the floor', { maxFeePerGas: 19n }, {}, {}, ['feeBelowFloor']],
  ['a floor that is not known', { maxFeePerGas: 19n }, {}, { floor: null }, ['feeTooLow']],
  ['a wei too little', {}, { balance: account.balance - 1n }, {}, ['balanceTooLow']],
  ['all at once', { nonce: 9, maxFeePerGas: 1n }, { balance: 0n }, {}, ['nonceGap', 'feeBelowFloor', 'balanceTooLow']],
])('%s holds it', (_what, ofSent, ofAccount, ofFees, held) => {
  expect(whatHolds({ ...sent, ...ofSent }, { ...account, ...ofAccount }, { ...fees, ...ofFees })).toEqual(held);
});

test('the account’s nonce and the receipt come from one node, also where the first refuses the receipt', async () => {
  const hash = `0x${'3e'.repeat(32)}` as const;
  const from = `0x${'a1'.repeat(20)}` as const;
  const block = { number: '0x10', hash, timestamp: '0x64', gasUsed: '0x0', gasLimit: '0x1', baseFeePerGas: '0x1' };
  const methods = {
    eth_getTransactionCount: () => '0x8',
    eth_getBalance: () => '0x1',
    eth_getBlockByNumber: () => ({ ...block, extraData: '0x', transactions: [] }),
    eth_getTransactionReceipt: (): unknown => null,
  };
  const refusing = await startRpcServer({
    ...methods,
    eth_getTransactionReceipt: () => {
      throw new RpcFault(-32005, 'limit exceeded');
    },
  });
  // It is a block behind: the nonce is not used there, and so the receipt is missing there.
  const behind = await startRpcServer({ ...methods, eth_getTransactionCount: () => '0x7' });
  const chain = openClient({ rpcUrls: [refusing.url, behind.url], chainId: 5042, timeoutMs: 60_000 });
  try {
    expect(await readPendingState(chain, { hash, from }, {})).toMatchObject({ accountNonce: 7, balance: 1n });
  } finally {
    await chain.close();
    await Promise.all([refusing.stop(), behind.stop()]);
  }
});
