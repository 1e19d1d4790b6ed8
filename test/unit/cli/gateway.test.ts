import { decodePaymentSignatureHeader, encodePaymentRequiredHeader } from '@x402/core/http';
import type { PaymentRequired } from '@x402/core/types';
import { verifyTypedData } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Call } from '../../../cli/port.ts';
import type { Seller } from '../../../cli/seller.ts';
import { ARC, PRICE } from '../../support/cli/model-seller.ts';
import { buyerIn, httpCall, KEY, LIMITS, newFolder, wordOf } from '../../support/cli/open-buyer.ts';
import { startStandIn } from '../../support/upstream/http-stand-in.ts';

// A seller that takes deposits in Circle's Gateway alone.

const CIRCLE = '0x77777777Dcc4d5A8B6E418Fd04D8997ef11000eE';
const SELLER = `0x${'5e'.repeat(20)}`;
const CALL = httpCall('http://seller.test/thing');

const chain = { id: '0x13b2', deposit: PRICE, time: 0 };
let rpc: Awaited<ReturnType<typeof startStandIn>>;
let shown: string[];
beforeAll(async () => {
  rpc = await startStandIn(async ({ body }) => {
    const { id, method } = body as { id: number; method: string };
    const results: Record<string, unknown> = {
      eth_chainId: chain.id,
      eth_getBlockByNumber: { number: '0x1', timestamp: `0x${chain.time.toString(16)}` },
      eth_call: `0x${chain.deposit.toString(16).padStart(64, '0')}`,
    };
    return { json: { jsonrpc: '2.0', id, result: results[method] } };
  });
});
afterAll(() => rpc.stop());
beforeEach(() => {
  Object.assign(chain, { id: '0x13b2', deposit: PRICE, time: 0 });
  shown = [];
});

const sellerOf =
  (verifyingContract: string) =>
  (call: Call): Seller => ({
    host: 'seller.test',
    name: `GET ${call.kind === 'http' ? call.url.href : ''}`,
    async send(payment) {
      const header = payment?.['PAYMENT-SIGNATURE'];
      if (header !== undefined) {
        shown.push(header);
        return { status: 200, headers: new Headers(), body: Buffer.from('{"answer":42}') };
      }
      const extra = { name: 'GatewayWalletBatched', version: '1', verifyingContract };
      const entry = {
        ...ARC,
        scheme: 'exact',
        amount: PRICE.toString(),
        payTo: SELLER,
        maxTimeoutSeconds: 604_900,
        extra,
      };
      const challenge = { x402Version: 2, resource: { url: 'http://seller.test/thing' }, accepts: [entry] };
      const demand = encodePaymentRequiredHeader(challenge as PaymentRequired);
      return { status: 402, headers: new Headers({ 'payment-required': demand }), body: Buffer.from('{}') };
    },
  });

/** A buyer whose endpoint tells this. */
function on(state: Partial<typeof chain>) {
  Object.assign(chain, state);
  return buyer(rpc.url);
}
const buyer = (rpcUrl: string | null, contract = CIRCLE) =>
  buyerIn(newFolder(), { rpcUrl }, { sellerOf: sellerOf(contract) });

test.each<[string, () => ReturnType<typeof buyer>, string]>([
  ['without an endpoint that shows the deposit', () => buyer(null), 'no-wallet'],
  ['from a deposit below the price', () => on({ deposit: PRICE - 1n }), 'no-wallet'],
  ['on another chain than the endpoint’s', () => on({ id: '0x1' }), 'no-wallet'],
  ['for another contract', () => buyer(rpc.url, `0x${'ba'.repeat(20)}`), 'no-way'],
])('it is not paid %s', async (_how, open, reason) => {
  expect(wordOf(await open().pay(CALL, LIMITS))).toBe(`refused: ${reason}`);
  expect(shown).toEqual([]);
});

test('it is paid from a deposit that covers the price, by a signature for Circle’s contract that outlasts a week', async () => {
  expect(wordOf(await buyer(rpc.url).pay(CALL, LIMITS))).toBe('answered');
  const { payload } = decodePaymentSignatureHeader(shown[0] ?? '');
  const { from, to, value, validAfter, validBefore, nonce } = payload.authorization as Record<string, string>;
  expect([to?.toLowerCase(), value]).toEqual([SELLER, PRICE.toString()]);
  expect(Number(validBefore)).toBeGreaterThan(Date.now() / 1000 + 604_800);
  const fields = [
    ...['from', 'to'].map((name) => ({ name, type: 'address' })),
    ...['value', 'validAfter', 'validBefore'].map((name) => ({ name, type: 'uint256' })),
    { name: 'nonce', type: 'bytes32' },
  ];
  const message = {
    from,
    to,
    nonce,
    value: BigInt(value!),
    validAfter: BigInt(validAfter!),
    validBefore: BigInt(validBefore!),
  };
  const signed = {
    address: privateKeyToAccount(KEY).address,
    domain: { name: 'GatewayWalletBatched', version: '1', chainId: 5042, verifyingContract: CIRCLE },
    types: { TransferWithAuthorization: fields },
    primaryType: 'TransferWithAuthorization',
    message,
    signature: payload.signature,
  };
  expect(await verifyTypedData(signed as never)).toBe(true);
});

test('it stays spent after its end, because the chain does not show what the Gateway has used', async () => {
  const one = buyer(rpc.url);
  one.budgets.set('day', 'usdc', PRICE);
  expect(wordOf(await one.pay(CALL, { ...LIMITS, via: 'gateway' }))).toBe('answered');
  Object.assign(chain, { deposit: 0n, time: Math.floor(Date.now() / 1000) + 700_000 });
  expect(await one.sweep()).toBe(0);
  expect(one.budgets.list()[0]?.spent).toBe(PRICE);
});
