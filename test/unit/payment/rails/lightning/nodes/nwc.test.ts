import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { decodeInvoice } from '../../../../../../src/payment/lnbtc/bolt11.ts';
import { TooMuchPower } from '../../../../../../src/payment/rails/lightning/nodes/receiver.ts';
import {
  type NostrRelay,
  type NostrWallet,
  startNostrRelay,
  startNostrWallet,
} from '../../../../../support/lightning/nostr-relay.ts';
import {
  articleOrder,
  everythingOf,
  openReceiver,
  type ReceiverBench,
} from '../../../../../support/lightning/receiver-bench.ts';

const signal = new AbortController().signal;
let relay: NostrRelay;
let wallet: NostrWallet;
let bench: ReceiverBench;
const connect = (timeoutMs = 2000) => openReceiver({ kind: 'nwc', connection: wallet.connection }, { timeoutMs });

beforeEach(async () => {
  relay = await startNostrRelay();
  wallet = await startNostrWallet(relay);
  bench = connect();
});
afterEach(async () => {
  await bench.close();
  await relay.stop();
});

describe('a wallet behind a relay', () => {
  test('is ordered an invoice with amount, description hash and expiry, and nothing else', async () => {
    const order = articleOrder();
    const text = await bench.receiver.createInvoice(order, signal);
    expect(wallet.orders).toEqual([
      { amount: 25_000, description_hash: Buffer.from(order.requestHash).toString('hex'), expiry: 300 },
    ]);
    expect(decodeInvoice(text)).toMatchObject({ amountMsat: 25_000n, expirySeconds: 300, hasDescription: false });
  });

  test('tells the key of its node', async () => {
    expect(await bench.receiver.nodeKey(signal)).toBe(wallet.key);
  });

  test('has a payment when it came in and is settled, and in no other case', async () => {
    const found = async (lookup: NostrWallet['lookup']) => {
      wallet.lookup = lookup;
      return bench.receiver.isPaid(Buffer.alloc(32, 1), signal);
    };
    expect(await found({ type: 'incoming', state: 'settled' })).toBe(true);
    expect(await found({ settled_at: 1_700_000_000 })).toBe(true);
    expect(await found({ type: 'incoming', state: 'pending' })).toBe(false);
    expect(await found({ type: 'incoming', settled_at: null })).toBe(false);
    expect(await found({ type: 'outgoing', state: 'settled' })).toBe(false);
    expect(await found(null)).toBe(false);
  });

  test.each([
    ['the older encryption', 'nip04'],
    ['no encryption that it names', null],
  ])('is understood when it speaks %s', async (_what, encryptions) => {
    relay.events.length = 0;
    wallet = await startNostrWallet(relay, encryptions);
    expect(await bench.receiver.nodeKey(signal)).toBe(wallet.key);
    const request = relay.events.find(({ kind }) => kind === 23_194);
    expect(request?.tags).toContainEqual(['encryption', encryptions ?? 'nip04']);
  });

  test('answers many questions at a time over one connection', async () => {
    await bench.receiver.nodeKey(signal);
    const before = relay.connections();
    const answers = await Promise.all(Array.from({ length: 4 }, () => bench.receiver.nodeKey(signal)));
    expect(new Set(answers)).toEqual(new Set([wallet.key]));
    expect(relay.connections()).toBe(before);
  });
});

describe('its connection', () => {
  test('is refused when it may spend in any way', async () => {
    const spending = ['pay_invoice', 'pay_keysend', 'multi_pay_invoice', 'multi_pay_keysend', 'create_connection'];
    for (const method of spending) {
      wallet.methods = ['get_info', 'make_invoice', method];
      const error = await bench.receiver.inspect(signal).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(TooMuchPower);
      expect(everythingOf(error)).toContain(`(${method})`);
      expect(everythingOf(error)).not.toContain(wallet.secret);
    }
  });

  test('is taken when it may only receive and read', async () => {
    wallet.methods.push('get_balance', 'list_transactions', 'get_budget', 'make_hold_invoice');
    expect(await bench.receiver.inspect(signal)).toEqual([]);
  });
});

describe('a failure', () => {
  test.each([
    ['the wallet says nothing', 'silent', /nwc: timed out/],
    ['the wallet refuses', 'refusing', /nwc: the wallet refuses make_invoice \(RESTRICTED\)/],
    ['the answer has another shape', 'odd', /nwc: answered make_invoice with an unexpected shape/],
    ['the answer cannot be decrypted', 'garbled', /nwc: answered what cannot be read/],
  ] as const)('is the node being away when %s, and never tells the secret', async (_what, mood, message) => {
    // Only one that says nothing is waited for in vain.
    bench = connect(mood === 'silent' ? 150 : 10_000);
    wallet.mood = mood;
    const error = await bench.receiver.createInvoice(articleOrder(), signal).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 502, code: 'upstream_failed', message: expect.stringMatching(message) });
    expect(everythingOf(error) + bench.logged.join()).not.toContain(wallet.secret);
    wallet.mood = 'well';
    // With as little time for each try as before, on a machine that may be busy.
    await vi.waitFor(async () => expect(await bench.receiver.nodeKey(signal)).toBe(wallet.key), 10_000);
  });

  test('is the node being away when the relay takes no requests', async () => {
    relay.refuse = true;
    await expect(bench.receiver.nodeKey(signal)).rejects.toThrow('nwc: no relay takes our requests');
  });

  test('is the node being away when the relay is gone', async () => {
    await bench.receiver.nodeKey(signal);
    await relay.stop();
    const error = await connect(200)
      .receiver.nodeKey(signal)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 502, message: 'nwc: no relay can be reached' });
    expect(everythingOf(error)).not.toContain(wallet.secret);
  });

  test('is none when the buyer leaves: the reason is the buyer’s, and the connection stays', async () => {
    await bench.receiver.nodeKey(signal);
    const before = relay.connections();
    wallet.mood = 'silent';
    const buyer = new AbortController();
    const asked = bench.receiver.nodeKey(buyer.signal);
    buyer.abort(new Error('gone'));
    await expect(asked).rejects.toThrow('gone');
    expect(relay.connections()).toBe(before);
  });

  test('ends every question that is open when the receiver is closed', async () => {
    await bench.receiver.nodeKey(signal);
    wallet.mood = 'silent';
    const asked = bench.receiver.nodeKey(signal);
    const outcome = expect(asked).rejects.toMatchObject({ status: 502 });
    await bench.receiver.close();
    await outcome;
  });
});
