import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { decodeInvoice } from '../../../../../../src/payment/lightning/bolt11.ts';
import { openNwcSession } from '../../../../../../src/payment/lightning/nodes/nwc.ts';
import { TooMuchPower } from '../../../../../../src/payment/lightning/nodes/receiver.ts';
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
const connect = (timeoutMs = 60_000) => openReceiver({ kind: 'nwc', connection: wallet.connection }, { timeoutMs });
/** Less than the library's own time-outs, which are 4.4 s. */
const SILENCE_MS = 4000;

beforeEach(async () => {
  relay = await startNostrRelay();
  wallet = await startNostrWallet(relay);
  bench = connect();
});
afterEach(async () => {
  await bench.close();
  await relay.stop();
});

/** The error of a question that a silent wallet has heard, when SILENCE_MS are over. */
async function afterSilence(ask: () => Promise<unknown>): Promise<unknown> {
  const heard = Promise.withResolvers<void>();
  const { wallet: answer } = relay;
  relay.wallet = (request) => {
    answer(request);
    heard.resolve();
  };
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const error = ask().catch((thrown: unknown) => thrown);
    await heard.promise;
    await vi.advanceTimersByTimeAsync(SILENCE_MS);
    return await error;
  } finally {
    vi.useRealTimers();
  }
}

describe('a wallet behind a relay', () => {
  test('is asked for an invoice with amount, description hash and expiry, and nothing else', async () => {
    const order = articleOrder();
    const text = await bench.receiver.createInvoice(order, signal);
    expect(wallet.orders).toEqual([
      { amount: 25_000, description_hash: Buffer.from(order.requestHash).toString('hex'), expiry: 300 },
    ]);
    expect(decodeInvoice(text)).toMatchObject({ amountMsat: 25_000n, expirySeconds: 300, hasDescription: false });
  });

  test('names the key of its node', async () => {
    expect(await bench.receiver.nodeKey(signal)).toBe(wallet.key);
  });

  test('has received a payment when it came in and is settled, and in no other case', async () => {
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
    expect(wallet.lookups).toEqual(Array(6).fill('01'.repeat(32)));
  });

  test('that refuses to look does not make a payment count as missing', async () => {
    wallet.mood = 'refusing';
    const asked = bench.receiver.isPaid(Buffer.alloc(32, 1), signal);
    await expect(asked).rejects.toThrow('nwc: the wallet refuses lookup_invoice (RESTRICTED)');
    wallet.mood = 'odd';
    wallet.lookup = {};
    expect(await bench.receiver.isPaid(Buffer.alloc(32, 1), signal)).toBe(false);
  });

  test('is asked by the best encryption that both speak, by an event addressed to it alone', async () => {
    await bench.receiver.nodeKey(signal);
    const request = relay.events.find(({ kind }) => kind === 23_194);
    expect(request?.tags).toEqual([
      ['p', wallet.pubkey],
      ['encryption', 'nip44_v2'],
    ]);
  });

  test('that speaks no encryption that we know is away', async () => {
    relay.events.length = 0;
    wallet = await startNostrWallet(relay, 'nip99');
    await expect(bench.receiver.nodeKey(signal)).rejects.toThrow('nwc: the wallet speaks no encryption that we know');
  });

  test('is asked for its encryption once, and no question is left open at the relay', async () => {
    for (let time = 0; time < 2; time++) await bench.receiver.nodeKey(signal);
    const requests = relay.events.filter(({ kind }) => kind === 23_194);
    expect(relay.asked).toEqual([
      { kinds: [13_194], authors: [wallet.pubkey], limit: 1 },
      ...requests.map(({ id }) => ({ kinds: [23_195], authors: [wallet.pubkey], '#e': [id] })),
    ]);
    await vi.waitFor(() => expect(relay.open()).toBe(0), 60_000);
  });

  test.each([
    ['the older encryption', 'nip04'],
    ['no encryption that it names', null],
    ['encryptions that its list leaves out', ''],
  ])('is understood when it speaks %s', async (_what, encryptions) => {
    relay.events.length = 0;
    wallet = await startNostrWallet(relay, encryptions);
    expect(await bench.receiver.nodeKey(signal)).toBe(wallet.key);
    const request = relay.events.find(({ kind }) => kind === 23_194);
    expect(request?.tags).toContainEqual(['encryption', encryptions || 'nip04']);
  });

  test('answers many questions at a time over one connection', async () => {
    await bench.receiver.nodeKey(signal);
    const before = relay.connections();
    const answers = await Promise.all(Array.from({ length: 4 }, () => bench.receiver.nodeKey(signal)));
    expect(new Set(answers)).toEqual(new Set([wallet.key]));
    expect(relay.connections()).toBe(before);
  });
});

describe('the connection to a wallet', () => {
  test('is refused when it may spend in any way', async () => {
    const spending = ['pay_invoice', 'pay_keysend', 'multi_pay_invoice', 'multi_pay_keysend', 'create_connection'];
    for (const method of spending) {
      wallet.methods = ['get_info', 'make_invoice', method];
      const error = await bench.receiver.inspect(signal).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(TooMuchPower);
      expect(error).toMatchObject({ name: 'TooMuchPower' });
      expect(everythingOf(error)).toContain(`(${method})`);
      expect(everythingOf(error)).not.toContain(wallet.secret);
    }
  });

  test('is accepted when it may only receive and read', async () => {
    wallet.methods.push('get_balance', 'list_transactions', 'get_budget', 'make_hold_invoice');
    expect(await bench.receiver.inspect(signal)).toEqual([]);
  });
});

describe('a failure of the wallet', () => {
  test.each([
    ['the wallet says nothing', 'silent', /nwc: timed out/],
    ['the wallet refuses', 'refusing', /nwc: the wallet refuses make_invoice \(RESTRICTED\)/],
    ['the answer has another shape', 'odd', /nwc: answered make_invoice with an unexpected shape/],
    ['the answer cannot be decrypted', 'garbled', /nwc: answered what cannot be read/],
  ] as const)('counts as the node being away when %s, and never reveals the secret', async (_what, mood, message) => {
    // Only one that says nothing is waited for in vain.
    if (mood === 'silent') bench = connect(SILENCE_MS);
    wallet.mood = mood;
    const ask = () => bench.receiver.createInvoice(articleOrder(), signal);
    const error = await (mood === 'silent' ? afterSilence(ask) : ask().catch((thrown: unknown) => thrown));
    expect(error).toMatchObject({ status: 502, code: 'upstream_failed', message: expect.stringMatching(message) });
    expect(everythingOf(error) + bench.logged.join()).not.toContain(wallet.secret);
    wallet.mood = 'well';
    await vi.waitFor(async () => expect(await bench.receiver.nodeKey(signal)).toBe(wallet.key), 60_000);
  });

  test('is the node being away when the relay takes no requests', async () => {
    relay.refuse = true;
    await expect(bench.receiver.nodeKey(signal)).rejects.toThrow('nwc: no relay takes our requests');
  });

  test('is the node being away when the relay is gone', async () => {
    await bench.receiver.nodeKey(signal);
    await relay.stop();
    const error = await connect()
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
    const reason = new Error('gone');
    buyer.abort(reason);
    await expect(asked).rejects.toBe(reason);
    expect(relay.connections()).toBe(before);
    await vi.waitFor(() => expect(relay.open()).toBe(0), 60_000);
  });

  test('ends every question that is open when the receiver is closed', async () => {
    await bench.receiver.nodeKey(signal);
    wallet.mood = 'silent';
    const asked = bench.receiver.nodeKey(signal);
    const outcome = expect(asked).rejects.toMatchObject({ status: 502, message: 'nwc: the connection was closed' });
    await bench.receiver.close();
    await outcome;
    await vi.waitFor(() => expect(relay.connections()).toBe(0), 60_000);
  });

  test('ends the other questions of its connection, which drop none that was made since', async () => {
    await bench.receiver.nodeKey(signal);
    wallet.mood = 'silent';
    const heard = relay.events.length;
    const waiting = expect(bench.receiver.nodeKey(signal)).rejects.toThrow('nwc: the connection was closed');
    await vi.waitFor(() => expect(relay.events.length).toBeGreaterThan(heard), { timeout: 60_000, interval: 2 });
    relay.refuse = true;
    const again = () => {
      relay.refuse = false;
      wallet.mood = 'well';
      return bench.receiver.nodeKey(signal);
    };
    expect(await bench.receiver.nodeKey(signal).catch(again)).toBe(wallet.key);
    await waiting;
    expect(await bench.receiver.nodeKey(signal)).toBe(wallet.key);
    await vi.waitFor(() => expect(relay.connections()).toBe(1), 60_000);
  });

  test('drops the connection that was silent', async () => {
    bench = connect(SILENCE_MS);
    wallet.mood = 'silent';
    const error = await afterSilence(() => bench.receiver.nodeKey(signal));
    expect(error).toMatchObject({ message: 'nwc: timed out' });
    await vi.waitFor(() => expect(relay.connections()).toBe(0), 60_000);
  });

  test.each(['restricted', 'RESTRICTED, says the wallet', 'x_RESTRICTED', 'A'.repeat(41), ''])(
    'quotes no refusal that is no plain code, such as %j',
    async (code) => {
      wallet.mood = 'refusing';
      wallet.code = code;
      await expect(bench.receiver.nodeKey(signal)).rejects.toThrow('nwc: the wallet refuses get_info (no known code)');
    },
  );

  test('is the node being away when the connection string holds no usable secret', async () => {
    const connection = wallet.connection.replace(wallet.secret, '00'.repeat(32));
    const other = openReceiver({ kind: 'nwc', connection });
    await expect(other.receiver.nodeKey(signal)).rejects.toThrow('nwc: its connection string holds no usable keys');
    await other.close();
  });

  test('of a session leaves no question open at the relay', async () => {
    const session = await openNwcSession(wallet.connection);
    await session.request('get_info', {}, signal);
    relay.refuse = true;
    await expect(session.request('get_info', {}, signal)).rejects.toThrow('no relay takes our requests');
    await vi.waitFor(() => expect(relay.open()).toBe(0), 60_000);
    session.close();
  });
});
