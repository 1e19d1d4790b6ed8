import { x402Client } from '@x402/core/client';
import { toClientEvmSigner } from '@x402/evm';
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { createPublicClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { arc } from 'viem/chains';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount } from '../../../src/embedded/accounts.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../src/embedded/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { balanceOf, newBuyer } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
/** 0.1 USDC. */
const DEPOSIT = 100_000n;

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  const env = {
    ...{ CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: createAccount().privateKey, CHANNELS_MIN_DEPOSIT_USDC: '0.1' },
    ...{ RECONCILE_INTERVAL_MS: '200', RECEIPT_POLL_MS: '50' },
  };
  service = await startService(network, { env });
  await until('channels are offered', async () =>
    (await entries()).some(({ scheme }) => scheme === 'batch-settlement'),
  );
});
afterAll(async () => {
  await service?.stop();
  await network.stop();
});

async function entries(): Promise<{ scheme: string; extra: Record<string, unknown> }[]> {
  const answer = await fetch(service.origin + PATH);
  return JSON.parse(atob(String(answer.headers.get('payment-required')))).accepts;
}

/** A stock client with a funded key. With `reads`, it can read the chain. */
async function buyer({ reads = true } = {}) {
  const { address, privateKey } = await newBuyer(network);
  const account = privateKeyToAccount(bytesToHex(privateKey));
  const chain = createPublicClient({ chain: arc, transport: http(network.rpcUrl) });
  const open = () => {
    const scheme = new BatchSettlementEvmScheme(reads ? toClientEvmSigner(account, chain) : account);
    const allowed = [{ network: 'eip155:5042' as const, asset: network.usdc }];
    const client = new x402Client().register('eip155:5042', scheme).setSpendControls({ allowedAssets: allowed });
    return { scheme, pay: wrapFetchWithPayment(fetch, client) };
  };
  return { address, open };
}

const receiptOf = (answer: Response) => JSON.parse(atob(String(answer.headers.get('payment-response'))));

test('the stock client deposits once and then buys with vouchers alone', async () => {
  const { address, open } = await buyer();
  const { pay } = open();
  const before = await balanceOf(network, address);
  const first = await pay(service.origin + PATH);
  expect(first.status).toBe(200);
  const receipt = receiptOf(first);
  expect(receipt).toMatchObject({ success: true, amount: String(DEPOSIT) });
  expect(receipt.transaction).toMatch(/^0x[0-9a-f]{64}$/);
  expect(before - (await balanceOf(network, address))).toBe(DEPOSIT);
  const price = BigInt(receipt.extra.chargedAmount);
  for (let call = 2n; call <= 20n; call++) {
    const answer = await pay(service.origin + PATH);
    expect(answer.status).toBe(200);
    const { transaction, extra } = receiptOf(answer);
    expect(transaction).toBe('');
    expect(extra.channelState.chargedCumulativeAmount).toBe(String(call * price));
  }
  expect(before - (await balanceOf(network, address))).toBe(DEPOSIT);
});

test('ten parallel calls of one stock client are all served, and each is charged once', async () => {
  const { open } = await buyer();
  const { pay } = open();
  const first = await pay(service.origin + PATH);
  const price = BigInt(receiptOf(first).extra.chargedAmount);
  const wallets = Array.from({ length: 10 }, (_, at) => `/v1/paid/chain/wallet?address=0x${String(at).repeat(40)}`);
  const answers = await Promise.all(wallets.map((path) => pay(service.origin + path)));
  expect(answers.map(({ status }) => status)).toEqual(wallets.map(() => 200));
  const charged = answers.map((answer) => BigInt(receiptOf(answer).extra.chargedAmount));
  const last = await pay(service.origin + PATH);
  const sum = charged.reduce((all, one) => all + one, 2n * price);
  expect(BigInt(receiptOf(last).extra.channelState.chargedCumulativeAmount)).toBe(sum);
});

test('a client that lost its store goes on with the channel, and one that lost an answer gets it again', async () => {
  const { open, address } = await buyer();
  const before = await balanceOf(network, address);
  const [one, other] = [open(), open()];
  expect((await one.pay(service.origin + PATH)).status).toBe(200);
  expect((await one.pay(service.origin + PATH)).status).toBe(200);
  const answer = await other.pay(`${service.origin}/v1/paid/fees/estimate`);
  expect(answer.status).toBe(200);
  expect(before - (await balanceOf(network, address))).toBe(DEPOSIT);
});

test('a refund gives the payer back what is left, in one call', async () => {
  const { open, address } = await buyer();
  const { pay, scheme } = open();
  const before = await balanceOf(network, address);
  const first = await pay(service.origin + PATH);
  expect((await pay(service.origin + PATH)).status).toBe(200);
  const price = BigInt(receiptOf(first).extra.chargedAmount);
  const refunded = await scheme.refund(service.origin + PATH);
  expect(refunded).toMatchObject({ success: true, amount: String(DEPOSIT - 2n * price) });
  expect(before - (await balanceOf(network, address))).toBe(2n * price);
});
