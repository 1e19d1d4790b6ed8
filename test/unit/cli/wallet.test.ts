import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { KeyError, payerFrom, readSecret } from '../../../cli/keys.ts';
import type { BudgetScope, Buyer, Call, Outcome } from '../../../cli/port.ts';
import { type Seller, sellerOf } from '../../../cli/seller.ts';
import { openRecord, type Wallet } from '../../../cli/wallet/record.ts';
import { createModelSeller, type ModelSeller, PRICE, PRICE_MSAT } from '../../support/cli/model-seller.ts';
import { buyerIn, httpCall, LIMITS, newFolder, wordOf } from '../../support/cli/open-buyer.ts';
import { walletHere } from '../../support/cli/wallet-here.ts';
import { startStandIn } from '../../support/upstream/http-stand-in.ts';

const BEGAN = Math.floor(Date.now() / 1000);
const HOUR = 3600;
const at = (name: string) => httpCall(`http://seller.test/${name}`);

/** A buyer of a seller that never fails, with a clock that the test sets. */
function shop(
  rail: 'exact' | 'lightning' = 'exact',
  settings: Parameters<typeof buyerIn>[1] = {},
  folder = newFolder(),
) {
  const seller = createModelSeller(rail, () => 0);
  seller.calm();
  const clock = { now: BEGAN };
  const env =
    rail === 'lightning' ? { PAYER_URL: 'http://wallet.test' } : { BUYER_PRIVATE_KEY: `0x${'11'.repeat(32)}` };
  const open = (more: Parameters<typeof buyerIn>[2] = {}) =>
    buyerIn(
      folder,
      { env, ...settings },
      { sellerOf: seller.sellerOf, payerFrom: async () => seller.payer, now: () => clock.now, ...more },
    );
  const buyer = open();
  /** Buys, and delivers the answer where there is one. */
  const buy = async (name: string, from: Buyer = buyer): Promise<Outcome> => {
    const outcome = await from.pay(at(name), LIMITS);
    if (outcome.kind === 'answered') outcome.delivered();
    return outcome;
  };
  return { seller, clock, buyer, buy, open, folder };
}

/** The seller, but it answers no payment. */
const silent =
  ({ sellerOf }: ModelSeller) =>
  (call: Call): Seller => {
    const seller = sellerOf(call);
    return { ...seller, send: (payment) => (payment ? Promise.reject(new Error('no answer')) : seller.send()) };
  };

describe('a budget', () => {
  test.each<[string, BudgetScope]>([
    ['of an hour', 'hour'],
    ['of a day', 'day'],
    ['of a host', { host: 'seller.test' }],
  ])(
    '%s has room for what it says to the unit, and the next payment is neither signed nor shown',
    async (_of, scope) => {
      const { buyer, buy, seller } = shop();
      buyer.budgets.set(scope, 'usdc', 2n * PRICE);
      expect([wordOf(await buy('a')), wordOf(await buy('b'))]).toEqual(['answered', 'answered']);
      const third = await buy('c');
      expect(wordOf(third)).toBe('refused: above-budget');
      expect((third as { message: string }).message).toMatch(
        /above what is left of the budget .*; nothing was signed$/,
      );
      expect(seller.presented.has('/c')).toBe(false);
      expect(buyer.budgets.list()).toEqual([{ scope, unit: 'usdc', most: 2n * PRICE, spent: 2n * PRICE }]);
      buyer.budgets.set(scope, 'usdc', 3n * PRICE);
      expect(wordOf(await buy('c'))).toBe('answered');
    },
  );

  test('of a call bounds one, and of another host none', async () => {
    const { buyer, buy } = shop();
    buyer.budgets.set({ host: 'other.test' }, 'usdc', 0n);
    buyer.budgets.set('call', 'usdc', PRICE);
    expect([wordOf(await buy('a')), wordOf(await buy('b'))]).toEqual(['answered', 'answered']);
    buyer.budgets.set('call', 'usdc', PRICE - 1n);
    expect(wordOf(await buy('c'))).toBe('refused: above-budget');
    buyer.budgets.set('call', 'usdc', null);
    expect(wordOf(await buy('c'))).toBe('answered');
  });

  test('of a host holds however its name is written, and for no other', async () => {
    const { folder, seller, open } = shop();
    const set = async (host: string, most: string) =>
      (await walletHere(['budget', '--host', host, most], folder, { PERCALL_DIR: folder })).stdout;
    /** Buys from the seller, which is known by the host of this URL. */
    const wordAt = async (url: string) => {
      const { host } = sellerOf(httpCall(url));
      const buyer = open({ sellerOf: (call) => ({ ...seller.sellerOf(call), host }) });
      return wordOf(await buyer.pay(at(new URL(url).pathname.slice(1)), LIMITS));
    };
    expect(await set('B\u00dccher.Test:443', '0')).toContain('host xn--bcher-kva.test, 0 USDC');
    expect(await wordAt('https://xn--bcher-kva.test/a')).toBe('refused: above-budget');
    expect(await wordAt('http://b\u00fccher.test./b')).toBe('refused: above-budget');
    expect(await wordAt('https://bucher.test/c')).toBe('answered');
    expect(await wordAt('https://xn--bcher-kva.test:8443/d')).toBe('answered');
    for (const host of ['a@b.test', 'a.test/x', 'a.test?x', '', 'a b']) expect(await set(host, '0'), host).toBe('');
  });

  test('of an hour forgets what is older, and of a day does not', async () => {
    const { buyer, buy, clock } = shop();
    buyer.budgets.set('hour', 'usdc', PRICE);
    buyer.budgets.set('day', 'usdc', 2n * PRICE);
    expect(wordOf(await buy('a'))).toBe('answered');
    clock.now += HOUR - 1;
    expect(wordOf(await buy('b'))).toBe('refused: above-budget');
    clock.now += 1;
    expect(wordOf(await buy('b'))).toBe('answered');
    clock.now += HOUR;
    expect(wordOf(await buy('c'))).toBe('refused: above-budget');
    clock.now += 23 * HOUR;
    expect(wordOf(await buy('c'))).toBe('answered');
  });

  test('in sats bounds Lightning alone', async () => {
    const { buyer, buy } = shop('lightning');
    buyer.budgets.set('day', 'sats', PRICE_MSAT);
    expect([wordOf(await buy('a')), wordOf(await buy('b'))]).toEqual(['answered', 'refused: above-budget']);
    const usdc = shop('exact', {}, newFolder());
    usdc.buyer.budgets.set('day', 'sats', 0n);
    expect(wordOf(await usdc.buy('a'))).toBe('answered');
  });

  test('in USDC counts sats at the buyer’s rate, and those from before it was set too', async () => {
    // 3 sat at 100,000 USD a bitcoin are 0.003 USDC.
    const folder = newFolder();
    const before = shop('lightning', {}, folder);
    expect(wordOf(await before.buy('a'))).toBe('answered');
    const after = shop('lightning', { btcUsd: '100000' }, folder);
    // A wallet of its own has made other invoices before.
    for (let made = 0; made < 3; made++) await after.seller.sellerOf(at('x')).send();
    after.buyer.budgets.set('day', 'usdc', 6000n);
    expect(wordOf(await after.buy('b'))).toBe('answered');
    expect(wordOf(await after.buy('c'))).toBe('refused: above-budget');
    const [second, first] = after.buyer.history().toSorted((one, other) => other.call.localeCompare(one.call));
    expect([first?.amount, second?.amount]).toEqual([
      { units: null, msat: PRICE_MSAT },
      { units: 3000n, msat: PRICE_MSAT },
    ]);
  });

  test('in USDC refuses sats before they are paid where there is no rate', async () => {
    const unreachable = { PAYER_URL: 'http://wallet.test', ...EXCHANGES_OFF };
    const { buyer, buy, seller } = shop('lightning', { env: unreachable });
    buyer.budgets.set('day', 'usdc', 10n ** 9n);
    expect(wordOf(await buy('a'))).toBe('refused: bad-rate');
    expect(seller.held()).toBe(0n);
    buyer.budgets.set('day', 'usdc', null);
    expect(wordOf(await buy('a'))).toBe('answered');
  });

  test('in USDC bounds sats by the price that a call was shown with, at the exchanges’ rate', async () => {
    const exchange = await startStandIn(async ({ path }) => {
      if (path.includes('coinbase')) return { json: { price: '100000' } };
      return { json: { last: '100000', timestamp: `${Math.floor(Date.now() / 1000)}` } };
    });
    onTestFinished(() => exchange.stop());
    const own = { UPSTREAM_COINBASE_URL: `${exchange.url}/coinbase`, UPSTREAM_BITSTAMP_URL: exchange.url };
    const env = { PAYER_URL: 'http://wallet.test', ...EXCHANGES_OFF, ...own };
    const { buyer } = shop('lightning', { env });
    const pay = async (shown: bigint) => wordOf(await buyer.pay(at('a'), { ...LIMITS, shown }));
    buyer.budgets.set('day', 'usdc', 10n ** 9n);
    // The call costs 3 sat, which are 0.003 USD.
    expect(await pay(1000n)).toBe('refused: above-listed');
    expect(await pay(3000n)).toBe('answered');
  });
});

const EXCHANGES_OFF = {
  UPSTREAM_COINBASE_URL: 'http://127.0.0.1:1',
  UPSTREAM_KRAKEN_URL: 'http://127.0.0.1:1',
  UPSTREAM_BITSTAMP_URL: 'http://127.0.0.1:1',
};

describe('what has expired', () => {
  /**
   * The buyer's RPC endpoint: its chain, the time of its newest block and of the final one, and whether the nonce is
   * used. Without a time the final block is the newest, of null there is none.
   */
  const FRESH = { id: '0x13b2', time: BEGAN, final: undefined as number | null | undefined, isUsed: false };
  const chain = { ...FRESH };
  let rpc: Awaited<ReturnType<typeof startStandIn>>;
  beforeAll(async () => {
    rpc = await startStandIn(async ({ body }) => {
      const { id, method, params } = body as { id: number; method: string; params: unknown[] };
      const results: Record<string, unknown> = {
        eth_chainId: chain.id,
        eth_getBlockByNumber: blockAt(String(params[0])),
        eth_call: `0x${(chain.isUsed ? '1' : '0').padStart(64, '0')}`,
      };
      return { json: { jsonrpc: '2.0', id, result: results[method] } };
    });
  });
  afterAll(() => rpc.stop());
  beforeEach(() => Object.assign(chain, FRESH));

  const NEWEST = 0x100;
  /** A block each second. */
  function blockAt(name: string) {
    const block = (number: number, time: number) => ({
      number: `0x${number.toString(16)}`,
      timestamp: `0x${time.toString(16)}`,
    });
    if (name === 'finalized') return chain.final === null ? null : block(NEWEST - 8, chain.final ?? chain.time);
    const number = name === 'latest' ? NEWEST : Number(name);
    return block(number, chain.time - (NEWEST - number));
  }

  /** A payment that has spent the whole budget of a day, and has expired by the buyer's clock. */
  async function spent(rpcUrl: string | null) {
    const one = shop('exact', { rpcUrl });
    one.buyer.budgets.set('day', 'usdc', PRICE);
    expect(wordOf(await one.buy('a'))).toBe('answered');
    one.clock.now = BEGAN + 601;
    return one;
  }

  test('and is unused at a block past its end is given back', async () => {
    const { buyer, buy } = await spent(rpc.url);
    chain.time = BEGAN + 601;
    expect(wordOf(await buy('b'))).toBe('answered');
    expect(
      buyer
        .history()
        .map(({ state }) => state)
        .toSorted(),
    ).toEqual(['answered', 'returned']);
  });

  test('and is unused is given back where no block is called final, 64 blocks later', async () => {
    const { buyer } = await spent(rpc.url);
    Object.assign(chain, { time: BEGAN + 664, final: null });
    expect(await buyer.sweep()).toBe(0);
    chain.time = BEGAN + 665;
    expect(await buyer.sweep()).toBe(1);
  });

  test.each<[string, () => void]>([
    [
      'is unused at a block that may be taken back',
      () => Object.assign(chain, { time: BEGAN + 700, final: BEGAN + 600 }),
    ],
    [
      'is unused at a block before the final one',
      () => Object.assign(chain, { time: BEGAN + 600, final: BEGAN + 601 }),
    ],
    ['is unused at a block of its last second', () => Object.assign(chain, { time: BEGAN + 600 })],
    ['is used', () => Object.assign(chain, { time: BEGAN + 700, isUsed: true })],
    ['is unused on another chain', () => Object.assign(chain, { time: BEGAN + 700, id: '0x1' })],
    ['cannot be looked up', () => Object.assign(chain, { time: BEGAN + 700, id: null })],
  ])('and %s stays spent', async (_how, change) => {
    const { buyer, buy } = await spent(rpc.url);
    change();
    expect(wordOf(await buy('b'))).toBe('refused: above-budget');
    expect(buyer.budgets.list()[0]?.spent).toBe(PRICE);
  });

  test('stays spent without an endpoint, whatever time it is', async () => {
    const { buy, clock } = await spent(null);
    clock.now = BEGAN + 86_399;
    expect(wordOf(await buy('b'))).toBe('refused: above-budget');
  });

  test('and was not answered may be paid anew once it is given back, and not before', async () => {
    const one = shop('exact', { rpcUrl: rpc.url });
    const broken = one.open({ sellerOf: silent(one.seller) });
    expect(wordOf(await one.buy('a', broken))).toBe('unanswered');
    one.clock.now = BEGAN + 601;
    Object.assign(chain, { time: BEGAN + 601, isUsed: true });
    // Used: the seller owes the answer, and the same payment is presented.
    expect(wordOf(await one.buy('a', broken))).toBe('unanswered');
    expect(one.buyer.open()).toHaveLength(1);
    const other = shop('exact', { rpcUrl: rpc.url });
    const away = other.open({ sellerOf: silent(other.seller) });
    expect(wordOf(await other.buy('a', away))).toBe('unanswered');
    other.clock.now = BEGAN + 601;
    chain.isUsed = false;
    expect(wordOf(await other.buy('a'))).toBe('answered');
    expect(
      other.buyer
        .history()
        .map(({ state }) => state)
        .toSorted(),
    ).toEqual(['answered', 'returned']);
  });
});

describe('one call', () => {
  test('that two processes make at once is paid once, and both have its answer', async () => {
    const { seller, open, folder } = shop();
    const [one, other] = [open(), open()];
    const [first, second] = await Promise.all([one.pay(at('a'), LIMITS), other.pay(at('a'), LIMITS)]);
    expect([wordOf(first), wordOf(second)]).toEqual(['answered', 'answered']);
    expect([seller.presented.get('/a')?.size, seller.charges.get('/a')]).toEqual([1, 1]);
    expect(readdirSync(folder)).toContain('wallet.db');
  });

  test('that is asked for over two rails at once is paid once', async () => {
    const env = { BUYER_PRIVATE_KEY: `0x${'11'.repeat(32)}`, PAYER_URL: 'http://wallet.test' };
    const [usdc, sats] = [shop('exact', { env }), shop('lightning')];
    // The first question is answered in USDC, the second in sats, before anything is counted.
    const both = Promise.withResolvers<void>();
    let questions = 0;
    const buyer = usdc.open({
      payerFrom: async () => sats.seller.payer,
      sellerOf: (call) => {
        const [inUsdc, inSats] = [usdc.seller.sellerOf(call), sats.seller.sellerOf(call)];
        const first = questions++ === 0;
        if (questions === 2) both.resolve();
        return {
          ...inUsdc,
          async send(payment) {
            if (payment) return inUsdc.send(payment);
            await both.promise;
            return first ? inUsdc.send() : inSats.send();
          },
        };
      },
    });
    const outcomes = await Promise.all([buyer.pay(at('a'), LIMITS), buyer.pay(at('a'), LIMITS)]);
    expect(outcomes.map(wordOf)).toEqual(['answered', 'answered']);
    expect(buyer.open().map(({ way }) => way)).toEqual(['exact']);
    expect([usdc.seller.charges.get('/a'), sats.seller.held()]).toEqual([1, 0n]);
  });

  test('that was given up by a person is paid anew, and both payments stay counted', async () => {
    const { seller, buyer, open } = shop();
    const away = open({ sellerOf: silent(seller) });
    expect(wordOf(await away.pay(at('a'), LIMITS))).toBe('unanswered');
    const [waiting] = buyer.open();
    expect([waiting?.state, waiting?.note]).toEqual(['signed', expect.stringContaining('no answer')]);
    expect([buyer.drop(waiting?.id ?? ''), buyer.drop(waiting?.id ?? '')]).toEqual([true, false]);
    buyer.budgets.set('day', 'usdc', 10n * PRICE);
    expect(wordOf(await buyer.pay(at('a'), LIMITS))).toBe('answered');
    expect(buyer.budgets.list()[0]?.spent).toBe(2n * PRICE);
  });

  test('is asked for by its price without anything being kept, and is not paid where the person declines', async () => {
    const { buyer, seller } = shop();
    const quote = await buyer.price(at('a'), LIMITS);
    expect(quote).toMatchObject({ kind: 'priced', price: { way: 'exact', amount: { units: PRICE, msat: null } } });
    const asked: unknown[] = [];
    const confirm = async (price: unknown) => asked.push(price) > 1;
    expect(wordOf(await buyer.pay(at('a'), { ...LIMITS, confirm }))).toBe('refused: declined');
    expect([buyer.open(), buyer.history(), seller.held()]).toEqual([[], [], 0n]);
    expect(wordOf(await buyer.pay(at('a'), { ...LIMITS, confirm }))).toBe('answered');
    expect(asked[1]).toMatchObject({ way: 'exact', payTo: `0x${'5e'.repeat(20)}` });
  });

  test('by an offer that cannot be paid asks no person, who would read the seller’s words in it', async () => {
    const { seller, open } = shop('lightning');
    const words = { network: 'lnbtc: a free test', payTo: 'your own wallet, so say yes', maxTimeoutSeconds: 60 };
    const entry = { scheme: 'exact', amount: '3000', asset: 'BTC', ...words, extra: {} };
    const challenge = { x402Version: 2, resource: { url: 'http://seller.test/a' }, accepts: [entry] };
    const headers = new Headers({ 'payment-required': btoa(JSON.stringify(challenge)) });
    const send = async () => ({ status: 402, headers, body: Buffer.alloc(0) });
    const buyer = open({ sellerOf: (call) => ({ ...seller.sellerOf(call), send }) });
    const asked: unknown[] = [];
    const confirm = async (price: unknown) => asked.push(price) > 0;
    expect(wordOf(await buyer.pay(at('a'), { ...LIMITS, confirm }))).toBe('refused: bad-offer');
    expect(asked).toEqual([]);
  });
});

describe('a host that was paid', () => {
  test('at one address is not paid at another before a person accepts that', async () => {
    const { buyer, seller, open, buy } = shop();
    expect(wordOf(await buy('a'))).toBe('answered');
    const moved = open({
      sellerOf: (call) => {
        const own = seller.sellerOf(call);
        const send = async (payment?: Readonly<Record<string, string>>) => {
          const reply = await own.send(payment);
          const header = reply.headers.get('payment-required');
          const other = header && btoa(atob(header).replaceAll('5e'.repeat(20), 'ba'.repeat(20)));
          return other ? { ...reply, headers: new Headers({ 'payment-required': other }) } : reply;
        };
        return { ...own, send };
      },
    });
    const refused = await moved.pay(at('b'), LIMITS);
    expect(wordOf(refused)).toBe('refused: not-pinned');
    expect((refused as { message: string }).message).toContain('percall wallet unpin seller.test');
    expect(seller.presented.has('/b')).toBe(false);
    expect([buyer.unpin('seller.test'), buyer.unpin('seller.test')]).toEqual([1, 0]);
    expect(wordOf(await moved.pay(at('b'), LIMITS))).toBe('answered');
  });
});

describe('the record', () => {
  test('is its owner’s alone, and forgets what could present a payment once its answer is there', async () => {
    const { buyer, folder, seller, open } = shop();
    expect([statSync(folder).mode & 0o077, statSync(join(folder, 'wallet.db')).mode & 0o777]).toEqual([0, 0o600]);
    const away = open({ sellerOf: silent(seller) });
    await away.pay(at('a'), LIMITS);
    const texts = () =>
      readdirSync(folder)
        .map((name) => readFileSync(join(folder, name), 'latin1'))
        .join();
    expect(texts()).toContain('PAYMENT-SIGNATURE');
    const outcome = await buyer.pay(at('a'), LIMITS);
    expect(wordOf(outcome)).toBe('answered');
    expect(texts()).not.toContain('PAYMENT-SIGNATURE');
  });

  /** The record, but one of its steps fails, as on a full disk. */
  const failingAt =
    (step: 'sign' | 'arrive') =>
    (wallet: Wallet): Wallet => ({
      ...wallet,
      [step]: () => {
        throw new Error('database or disk is full');
      },
    });

  test('that fails before the signed payment is kept shows nobody the payment', async () => {
    const { buyer, open, seller } = shop();
    const broken = open({ through: failingAt('sign') });
    const outcome = await broken.pay(at('a'), LIMITS);
    expect([wordOf(outcome), (outcome as { message: string }).message]).toEqual([
      'unanswered',
      expect.stringContaining('disk is full; run the same call again'),
    ]);
    expect(seller.presented.has('/a')).toBe(false);
    expect(buyer.open().map(({ state }) => state)).toEqual(['counted']);
    // The same authorization is signed, and no other is counted.
    expect(wordOf(await buyer.pay(at('a'), LIMITS))).toBe('answered');
    expect([...(seller.presented.get('/a') ?? [])]).toEqual([buyer.open()[0]?.reference]);
  });

  test('that fails when the answer is there costs nobody the answer, and the payment waits still', async () => {
    const { buyer, open, seller } = shop();
    const outcome = await open({ through: failingAt('arrive') }).pay(at('a'), LIMITS);
    expect(outcome).toMatchObject({ kind: 'answered', answer: { body: Buffer.from('/a') } });
    expect(buyer.open().map(({ state }) => state)).toEqual(['signed']);
    expect(wordOf(await buyer.pay(at('a'), LIMITS))).toBe('answered');
    expect(seller.presented.get('/a')?.size).toBe(1);
  });

  test('of a newer version is not opened', () => {
    const folder = newFolder();
    const holder = { name: 'one', isAlive: () => true };
    openRecord(folder, () => 0, holder).close();
    const db = readFileSync(join(folder, 'wallet.db'));
    // SQLite's user version: four bytes at 60.
    db.writeUInt32BE(2, 60);
    writeFileSync(join(folder, 'wallet.db'), db);
    expect(() => openRecord(folder, () => 0, holder)).toThrow('of a newer percall');
  });

  test('counts a voucher by what it adds to the highest that was signed in its channel', () => {
    const wallet = openRecord(newFolder(), () => BEGAN, { name: 'one', isAlive: () => true });
    const counted = (callHash: string) => {
      const found = wallet.count(
        {
          call: callHash,
          host: 'h',
          callHash,
          payer: 'p',
          way: 'channel',
          network: 'n',
          asset: 'a',
          payTo: 't',
          amount: { units: 10n, msat: null },
          reference: 'c',
          expiresAt: null,
          plan: {},
          channel: 'c',
        },
        { rate: null, payers: ['p'], me: 'me' },
      );
      return found.kind === 'counted' ? found.row.id : found.kind;
    };
    const unitsOf = (id: string) => wallet.byId(id)?.amount.units;
    wallet.budgets.set('day', 'usdc', 25n);
    const first = counted('one');
    expect(wallet.countVoucher(first, 'c', { upTo: 110n, price: 10n })).toBeNull();
    wallet.sign(first, {});
    // Another call waits for the channel, and no voucher is lost to a refusal.
    expect(counted('two')).toBe('taken');
    wallet.refuse(first, 'not charged');
    const second = counted('two');
    expect(wallet.countVoucher(second, 'c', { upTo: 110n, price: 10n })).toBeNull();
    expect([unitsOf(first), unitsOf(second)]).toEqual([10n, 0n]);
    // A correction that shows more charges needs more room.
    expect(wallet.countVoucher(second, 'c', { upTo: 125n, price: 10n })).toBeNull();
    expect(wallet.countVoucher(second, 'c', { upTo: 126n, price: 10n })).toContain('above what is left');
    expect(unitsOf(second)).toBe(15n);
    // What was not signed is not counted, in the channel neither.
    wallet.uncount(second);
    const third = counted('three');
    expect(wallet.countVoucher(third, 'c', { upTo: 120n, price: 10n })).toBeNull();
    expect(unitsOf(third)).toBe(10n);
    wallet.close();
  });
});

describe('an address with a password in it', () => {
  test.each([
    ['PAYER_URL', 'http://user:sesame@127.0.0.1:1/pay'],
    ['PAYER_URL', '127.0.0.1:1/sesame'],
    ['PHOENIXD_PAYER_URL', 'http://:sesame@127.0.0.1:1'],
  ])('as %s=%s is refused before anything is counted, and no message holds it', async (name, text) => {
    const env = { [name]: text, PHOENIXD_PAYER_PASSWORD: 'x' };
    const { open, buyer } = shop('lightning', { env });
    const outcome = await open({ payerFrom }).pay(at('a'), LIMITS);
    expect(wordOf(outcome)).toBe('refused: no-wallet');
    expect(JSON.stringify(outcome)).not.toContain('sesame');
    expect(buyer.open()).toEqual([]);
  });

  test.each(['http://user:sesame@127.0.0.1:1/', 'rpc.test/sesame'])(
    'as RPC_URL=%s reaches no line of the log',
    async (rpcUrl) => {
      const { buyer } = shop('exact', { rpcUrl });
      buyer.budgets.set('day', 'usdc', PRICE);
      const said: string[] = [];
      const say = (line: string) => void said.push(line);
      expect(wordOf(await buyer.pay(at('a'), { ...LIMITS, say }))).toBe('answered');
      expect(said.join()).toContain('were not looked up: RPC_URL gives no answer');
      expect(said.join()).not.toContain('sesame');
    },
  );
});

describe('a secret', () => {
  const file = (mode: number, text = 'secret-text\n') => {
    const path = join(newFolder(), 'key');
    writeFileSync(path, text);
    chmodSync(path, mode);
    return path;
  };

  test('comes from the environment, or from a file that its owner alone may read', () => {
    expect(readSecret({ A: 'x' }, 'A')).toBe('x');
    expect(readSecret({}, 'A')).toBeNull();
    expect(readSecret({ A_FILE: file(0o600) }, 'A')).toBe('secret-text');
    expect(readSecret({ A_FILE: file(0o400) }, 'A')).toBe('secret-text');
  });

  test.each<[string, () => Record<string, string>, string]>([
    ['a file that its group may read', () => ({ A_FILE: file(0o640) }), 'open to others'],
    ['a file that all may write', () => ({ A_FILE: file(0o602) }), 'open to others'],
    ['no file', () => ({ A_FILE: '/nowhere/key' }), 'cannot be read'],
    ['an empty file', () => ({ A_FILE: file(0o600, '\n') }), 'is empty'],
    ['two places', () => ({ A: 'secret-text', A_FILE: file(0o600) }), 'both set'],
  ])('does not come from %s, and no message holds it', (_what, env, reason) => {
    const failure = (() => {
      try {
        return readSecret(env(), 'A');
      } catch (error) {
        return error;
      }
    })();
    expect(failure).toBeInstanceOf(KeyError);
    expect(String(failure)).toContain(reason);
    expect(String(failure)).not.toContain('secret-text');
  });
});
