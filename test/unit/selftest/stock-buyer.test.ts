import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { createStockBuyer } from '../../../src/selftest/buyer.ts';
import { newKey, USDC } from '../../support/usdc/payments.ts';
import {
  receipt,
  type ScriptedSeller,
  SELLER,
  startScriptedSeller,
  status,
  TERMS,
  TRANSACTION,
} from './scripted-seller.ts';

let shop: ScriptedSeller;
beforeEach(async () => {
  shop = await startScriptedSeller();
});
afterEach(() => shop.stop());

const { privateKey, address } = newKey();
const buyer = createStockBuyer({
  privateKey: bytesToHex(privateKey),
  network: 'eip155:5042',
  asset: USDC,
  seller: SELLER,
});
const alive = new AbortController().signal;
const buy = (signal = alive) => buyer.buy(`${shop.url}/x`, 500n, signal);

describe('the self-test’s buyer', () => {
  test('signs the requested payment at the listed price, and returns the status, the receipt’s hash and the nonce', async () => {
    const bought = await buy();
    expect(buyer.address).toBe(address);
    expect(shop.shown).toHaveLength(1);
    const [shown] = shop.shown;
    expect(shown).toMatchObject({ value: '500', to: expect.stringMatching(new RegExp(SELLER, 'i')) });
    expect(bought).toEqual({
      status: 200,
      nonce: shown?.nonce,
      transaction: TRANSACTION,
      latencyMs: expect.any(Number),
      fault: null,
    });
  });

  test.each([
    ['one unit more than the listed price', { amount: '501' }],
    ['payment to a third party', { payTo: `0x${'66'.repeat(20)}` }],
    ['another asset', { asset: `0x${'77'.repeat(20)}` }],
    ['another chain', { network: 'eip155:1' }],
    ['another scheme', { scheme: 'upto' }],
  ])('signs nothing for %s', async (_what, changes) => {
    shop.terms = { ...TERMS, ...changes };
    expect(await buy()).toMatchObject({ status: null, nonce: null, transaction: null, fault: 'terms_refused' });
    expect(shop.shown).toEqual([]);
  });

  test('an answer without a challenge is returned as it is, unpaid', async () => {
    shop.challenge = (response) => void response.writeHead(503).end('{}');
    expect(await buy()).toMatchObject({ status: 503, nonce: null, transaction: null, fault: null });
  });

  test('an unreadable challenge is reported as refused terms', async () => {
    shop.challenge = (response) => void response.writeHead(402, { 'payment-required': '!' }).end('{}');
    expect(await buy()).toMatchObject({ status: null, nonce: null, fault: 'terms_refused' });
  });

  test.each([402, 409, 500, 503])('a refusal of the payment keeps its status %i and the nonce', async (code) => {
    shop.answers['/x'] = status(code);
    expect(await buy()).toMatchObject({
      status: code,
      nonce: shop.shown[0]?.nonce ?? null,
      transaction: null,
      fault: null,
    });
    expect(shop.shown).toHaveLength(1);
  });

  test.each([
    ['of no success', { success: false }],
    ['with a hash that is none', { transaction: 'soon' }],
  ])('a receipt %s names no transaction', async (_what, changes) => {
    shop.answers['/x'] = (response) => void response.writeHead(200, receipt(changes)).end('{}');
    expect(await buy()).toMatchObject({ status: 200, transaction: null });
  });

  test('an answer that breaks off counts as none, with the nonce that was presented', async () => {
    shop.answers['/x'] = (response) => {
      response.writeHead(200, { ...receipt(), 'content-length': '100' }).write('half');
      setImmediate(() => response.destroy());
    };
    expect(await buy()).toMatchObject({ status: null, fault: 'unreachable', nonce: shop.shown[0]?.nonce ?? '' });
  });

  test('a closed port is reported as unreachable', async () => {
    await shop.stop();
    expect(await buy()).toMatchObject({ status: null, nonce: null, fault: 'unreachable' });
  });

  test('a redirect is not followed, and its target gets no payment', async () => {
    const decoy = createServer((_request, response) => response.writeHead(302, { location: `${shop.url}/x` }).end());
    await new Promise<void>((resolve) => decoy.listen(0, '127.0.0.1', resolve));
    const bought = await buyer.buy(`http://127.0.0.1:${(decoy.address() as AddressInfo).port}/x`, 500n, alive);
    expect(bought).toMatchObject({ status: null, nonce: null, fault: 'unreachable' });
    expect(shop.shown).toEqual([]);
    decoy.closeAllConnections();
    decoy.close();
  });

  test("ends when its signal aborts, with the signal's reason", async () => {
    const stop = new AbortController();
    shop.answers['/x'] = () => stop.abort(new Error('enough'));
    await expect(buy(stop.signal)).rejects.toThrow('enough');
  });
});
