import { x402Client } from '@x402/core/client';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { entriesOn, listedPath } from '../../../src/catalogue/paths.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { dearest, priceOf } from '../../support/prices.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf, decoded, newBuyer, present, transfersOf } from '../../support/usdc/buyer.ts';
import { newOutsider } from '../../support/usdc/outsider.ts';

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  service = await startService(network);
});
afterAll(async () => {
  await service.stop();
  await network.stop();
});

describe('the stock client', () => {
  test('buys each paid route, and the hash it gets is a transfer of exactly the price to the seller', async () => {
    const { address, privateKey } = await newBuyer(network);
    const signer = privateKeyToAccount(bytesToHex(privateKey));
    const client = new x402Client().register('eip155:5042', new ExactEvmScheme(signer)).setSpendControls({
      allowedAssets: [{ network: 'eip155:5042', asset: network.usdc, maxAmountPerPayment: String(dearest().units) }],
    });
    const pay = wrapFetchWithPayment(fetch, client);
    const anyTransaction = await (await newOutsider(network)).submit(
      (await (await newBuyer(network)).sign(service.origin, '/v1/paid/fees/estimate')).authorization,
    );
    const paths = [
      '/v1/paid/fees/estimate?gas=50000',
      `/v1/paid/chain/wallet?address=${address}`,
      `/v1/paid/arc/wallet?address=${address}`,
      `/v1/paid/chain/token?address=${network.usdc}`,
      `/v1/paid/chain/tx?hash=${anyTransaction}`,
    ];
    for (const path of paths) {
      const [payerBefore, sellerBefore] = [await balanceOf(network, address), await balanceOf(network, network.seller)];
      const answer = await pay(service.origin + path);
      expect([path, answer.status]).toEqual([path, 200]);
      expect(answer.headers.get('cache-control')).toBe('private, no-store');
      expect(answer.headers.get('etag')).toBeNull();
      expect(await answer.json()).toMatchObject({ source: { name: expect.any(String) } });
      const receipt = JSON.parse(atob(String(answer.headers.get('payment-response'))));
      expect(receipt).toMatchObject({ success: true, network: 'eip155:5042', payer: address });
      const price = BigInt(receipt.amount);
      const listed = service.deps.listed.find((endpoint) =>
        path.replace('/arc/', '/chain/').startsWith(listedPath(endpoint)),
      );
      expect(price).toBe(listed?.price?.units);
      expect(await balanceOf(network, address)).toBe(payerBefore - price);
      expect(await balanceOf(network, network.seller)).toBe(sellerBefore + price);
      const onChain = await network.rpc<{ status: string; logs: { address: string; data: string }[] }>(
        'eth_getTransactionReceipt',
        [receipt.transaction],
      );
      expect(onChain.status).toBe('0x1');
      const moved = onChain.logs.filter((log) => log.address === network.usdc && log.data !== '0x');
      expect(moved.map((log) => BigInt(log.data))).toEqual([price]);
    }
  });
});

describe('without paying,', () => {
  const priced = () => entriesOn(service.deps.listed, 'paid');

  test.each(['', '?nonsense=1', '?address=', '?gas=abc&gas=2', '?address=0x1&hash=%00'])(
    'every priced route answers 402 to query "%s", GET and HEAD, and its handler does not run',
    async (query) => {
      for (const endpoint of priced()) {
        for (const method of ['GET', 'HEAD']) {
          const answer = await service.get(listedPath(endpoint) + query, { method });
          expect([method, endpoint.path, answer.status]).toEqual([method, endpoint.path, 402]);
          const challenge = decoded(answer, 'payment-required') as { accepts: object[]; resource: { url: string } };
          expect(challenge.accepts[0]).toEqual({
            scheme: 'exact',
            network: 'eip155:5042',
            asset: '0x3600000000000000000000000000000000000000',
            amount: String(endpoint.price?.units),
            payTo: network.seller,
            maxTimeoutSeconds: 604900,
            extra: { name: 'USDC', version: '2', assetTransferMethod: 'eip3009', decimals: 6 },
          });
          expect(challenge.resource.url).toBe(service.origin + listedPath(endpoint) + query);
          expect(answer.headers['cache-control']).toBe('no-store');
          if (method === 'GET') expect(Object.keys(JSON.parse(answer.body))).toEqual(['hint']);
          else expect(answer.body).toBe('');
        }
      }
    },
  );

  test('a version 1 header gets 402 with the reason that its version is not supported', async () => {
    const answer = await service.get('/v1/paid/fees/estimate', { headers: { 'x-payment': 'e30=' } });
    expect(answer.status).toBe(402);
    expect(decoded(answer, 'payment-required').error).toMatch(/version 2.*PAYMENT-SIGNATURE/);
  });

  test('HEAD gets 402 even with a payment, which moves nothing', async () => {
    const buyer = await newBuyer(network);
    const payment = await buyer.sign(service.origin, '/v1/paid/fees/estimate');
    const answer = await service.get('/v1/paid/fees/estimate', {
      method: 'HEAD',
      headers: { 'payment-signature': payment.header },
    });
    expect(answer.status).toBe(402);
    expect(await present(service.origin, '/v1/paid/fees/estimate', payment)).toMatchObject({ status: 200 });
  });
});

describe('a payment', () => {
  test.each([
    ['/v1/paid/fees/estimate', 'gas=abc', 'gas'],
    ['/v1/paid/fees/estimate', 'gas=0', 'gas'],
    ['/v1/paid/fees/estimate', 'gas=', 'gas'],
    ['/v1/paid/fees/estimate', 'gass=21000', 'gass'],
    ['/v1/paid/fees/estimate', 'gas=1&gas=2', 'gas'],
    ['/v1/paid/chain/wallet', '', 'address'],
    ['/v1/paid/chain/wallet', 'address=0x12', 'address'],
    ['/v1/paid/chain/tx', 'hash=0xzz', 'hash'],
  ])('for %s?%s is 400 naming %s, and moves nothing', async (path, query, name) => {
    const buyer = await newBuyer(network);
    const payment = await buyer.sign(service.origin, path);
    const answer = await present(service.origin, `${path}?${query}`, payment);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ charged: false, code: 'bad_parameter', errors: [{ path: name }] });
    expect(answer.headers['content-type']).toContain('application/problem+json');
    expect(await transfersOf(network, payment)).toBe(0);
    expect(await service.deps.payments.ledger.countByState()).toMatchObject({ reserved: 0, settling: 0, unknown: 0 });
  });

  test('for the route that always fails is 500, moves nothing, and still buys something else', async () => {
    const { units } = priceOf('/selftest/fail');
    const buyer = await newBuyer(network, units);
    const payment = await buyer.sign(service.origin, '/v1/paid/selftest/fail');
    const answer = await present(service.origin, '/v1/paid/selftest/fail', payment);
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.body)).toMatchObject({ charged: false });
    expect(await balanceOf(network, buyer.address)).toBe(units);
  });

  test('for what is not found costs nothing', async () => {
    const buyer = await newBuyer(network);
    const path = `/v1/paid/chain/tx?hash=0x${'ab'.repeat(32)}`;
    const payment = await buyer.sign(service.origin, path);
    expect(await present(service.origin, path, payment)).toMatchObject({ status: 404 });
    expect(await transfersOf(network, payment)).toBe(0);
  });

  test('whose payer lacks the balance gets 402 with that reason', async () => {
    const buyer = await newBuyer(network, priceOf('/fees/estimate').units - 1n);
    const payment = await buyer.sign(service.origin, '/v1/paid/fees/estimate');
    const answer = await present(service.origin, '/v1/paid/fees/estimate', payment);
    expect(answer.status).toBe(402);
    expect(decoded(answer, 'payment-required').error).toBe('invalid_exact_evm_insufficient_balance');
  });
});
