import { x402Client } from '@x402/core/client';
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/client';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { pad, zeroAddress } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { eventsOf } from '../../support/channels/chain-view.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { channelEnv, receiptOf } from '../../support/channels/stock-buyer.ts';
import { priceOf } from '../../support/prices.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf } from '../../support/usdc/buyer.ts';

// Payers that are contracts (ERC-1271), and keys whose account has code (EIP-7702), with the stock client.

const FUNDS = 200_000n;
const DEPOSIT = 100_000n;
const PRICE = priceOf('/fees/estimate').units;
const REFUSED = 'invalid_batch_settlement_evm_voucher_signature';
type Scheme = ExactEvmScheme | BatchSettlementEvmScheme;

let network: EmbeddedNetwork;
let service: Service;
let url: string;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  // The proxy's word names the client.
  service = await startService(network, { env: { ...channelEnv('0.1'), TRUSTED_PROXIES: '127.0.0.1' } });
  url = `${service.origin}/v1/paid/fees/estimate`;
  await untilChannelsAreOffered(url);
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

/** A smart wallet with USDC, and a signer that pays as the wallet with its owner's key. */
async function newWallet() {
  const owner = privateKeyToAccount(createAccount().privateKey);
  const address = await network.deploy('SmartWallet', [owner.address]);
  await network.fundUsdc(address, FUNDS);
  return { address, signer: { address, signTypedData: owner.signTypedData } };
}
const pay = (scheme: Scheme, from?: string): Promise<Response> => {
  const client = new x402Client().register('eip155:5042', scheme).setSpendControls({ allowedAssets: true });
  const asClient: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    if (from) request.headers.set('x-forwarded-for', from);
    return fetch(request);
  };
  return wrapFetchWithPayment(asClient, client)(url);
};
const errorOf = (answer: Response) => [
  answer.status,
  JSON.parse(atob(String(answer.headers.get('payment-required')))).error,
];

test('a smart wallet whose vouchers only its contract could check is refused by name and not charged, and pays over usdc-exact', async () => {
  const { address, signer } = await newWallet();
  // With no key of its own, and with the wallet's address as the key: both need the contract to check each voucher.
  for (const payerAuthorizer of [zeroAddress, address]) {
    const answer = await pay(new BatchSettlementEvmScheme(signer, { payerAuthorizer }));
    expect(errorOf(answer)).toEqual([402, REFUSED]);
    expect(await balanceOf(network, address)).toBe(FUNDS);
  }
  expect((await pay(new ExactEvmScheme(signer))).status).toBe(200);
  expect(await balanceOf(network, address)).toBe(FUNDS - PRICE);
});

test('a smart wallet that names a key for its vouchers deposits by its contract and buys by that key', async () => {
  const { address, signer } = await newWallet();
  const voucherSigner = privateKeyToAccount(createAccount().privateKey);
  const scheme = new BatchSettlementEvmScheme(signer, { voucherSigner });
  const receipts = [receiptOf(await pay(scheme)), receiptOf(await pay(scheme))];
  expect(receipts.map(({ amount }) => amount)).toEqual([String(DEPOSIT), '']);
  const { channelId, chargedCumulativeAmount } = receipts[1]?.extra.channelState ?? {};
  expect(chargedCumulativeAmount).toBe(String(2n * PRICE));
  expect(await eventsOf(network, 'Deposited', String(channelId))).toEqual([DEPOSIT]);
  expect(await balanceOf(network, address)).toBe(FUNDS - DEPOSIT);
});

test('the contracts that are asked for their signature have one budget for both ways to pay', async () => {
  const from = '192.0.2.8';
  const { address, signer } = await newWallet();
  const { signTypedData } = privateKeyToAccount(createAccount().privateKey);
  for (let check = 0; check < 8; check++) {
    const answer = await pay(new ExactEvmScheme({ address, signTypedData }), from);
    expect(errorOf(answer)).toEqual([402, 'invalid_exact_evm_signature']);
  }
  const voucherSigner = privateKeyToAccount(createAccount().privateKey);
  const deposit = new BatchSettlementEvmScheme(signer, { voucherSigner });
  const refused = await pay(deposit, from);
  expect([refused.status, JSON.parse(await refused.text()).code]).toEqual([429, 'contract_signatures']);
  expect((await pay(deposit, '192.0.2.9')).status).toBe(200);
});

/** A key whose account has the code of a smart wallet, as after a delegation (EIP-7702). `ownKey`: the code takes the signatures of this key. */
async function newDelegated({ ownKey }: { ownKey: boolean }) {
  const account = privateKeyToAccount(createAccount().privateKey);
  const owner = ownKey ? account.address : createAccount().address;
  const { address: wallet } = await newWallet();
  await network.fundUsdc(account.address, FUNDS);
  await network.rpc('anvil_setCode', [account.address, await network.rpc('eth_getCode', [wallet, 'latest'])]);
  // The wallet's only variable: its owner.
  await network.rpc('anvil_setStorageAt', [account.address, pad('0x0'), pad(owner)]);
  return account;
}

test('a key that was delegated to code of another owner (EIP-7702) is refused by the scheme’s name before its deposit is sent', async () => {
  const account = await newDelegated({ ownKey: false });
  const answer = await pay(new BatchSettlementEvmScheme(account));
  expect(errorOf(answer)).toEqual([402, 'invalid_batch_settlement_evm_deposit_simulation_failed']);
  expect(await balanceOf(network, account.address)).toBe(FUNDS);
});

test('a key that was delegated to code that takes its signatures (EIP-7702) deposits and buys like a plain account', async () => {
  const account = await newDelegated({ ownKey: true });
  const scheme = new BatchSettlementEvmScheme(account);
  const receipts = [receiptOf(await pay(scheme)), receiptOf(await pay(scheme))];
  expect(receipts.map(({ amount }) => amount)).toEqual([String(DEPOSIT), '']);
  expect(await balanceOf(network, account.address)).toBe(FUNDS - DEPOSIT);
});
