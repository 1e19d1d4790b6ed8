import { join } from 'node:path';
import Database from 'libsql';
import { describe, expect, test } from 'vitest';
import type { Buyer, Limits } from '../../../cli/port.ts';
import type { Seller } from '../../../cli/seller.ts';
import { openRecord } from '../../../cli/wallet/record.ts';
import { challengeOf } from '../../support/cli/model-seller.ts';
import { buyerIn, httpCall, LIMITS, newFolder, wordOf } from '../../support/cli/open-buyer.ts';

// What a seller can get in deposits into payment channels: whichever channel it names, and whatever it says became of
// the last deposit, to a buyer who cannot read the chain.

const USDC = 10n ** 6n;
const BEGAN = 1_800_000_000;
const AUTHORIZERS = ['a1', 'a2', 'a3'].map((byte) => `0x${byte.repeat(20)}`);

/** A buyer, and hosts that take each signed deposit and say that nothing was charged. */
function shop(folder = newFolder()) {
  const terms = { receiverAuthorizer: AUTHORIZERS[0], withdrawDelay: 86_400, minDeposit: '1000000' };
  const clock = { now: BEGAN };
  const deposits: bigint[] = [];
  const said: string[] = [];
  const network = { isDown: false };
  const open = () =>
    buyerIn(
      folder,
      {},
      {
        now: () => clock.now,
        sellerOf: (call) => {
          const url = call.kind === 'http' ? call.url : call.server;
          const challenge = challengeOf('channel', url.pathname);
          const resource = { url: url.href };
          const accepts = challenge.accepts.map((one) => ({ ...one, extra: { ...one.extra, ...terms } }));
          const headers = new Headers({
            'payment-required': btoa(JSON.stringify({ ...challenge, resource, accepts })),
          });
          const send: Seller['send'] = async (payment) => {
            if (!payment) return { status: 402, headers, body: Buffer.from('{}') };
            const { payload } = JSON.parse(atob(payment['PAYMENT-SIGNATURE'] ?? ''));
            if (payload.deposit) deposits.push(BigInt(payload.deposit.amount));
            if (network.isDown) throw new Error('the answer was lost');
            return { status: 500, headers: new Headers(), body: Buffer.from('{"detail":"x","charged":false}') };
          };
          return { host: url.host, name: `GET ${url.href}`, send };
        },
      },
    );
  const buyer = open();
  let calls = 0;
  /** A new call at a host each time. */
  const pay = async (more: Partial<Limits> = {}, host = 'seller.test', from: Buyer = buyer): Promise<string> => {
    calls += 1;
    const limits: Limits = { ...LIMITS, via: 'channel', maxDeposit: USDC, ...more };
    const outcome = await from.pay(httpCall(`http://${host}/${calls}`), limits);
    if ('message' in outcome) said.push(outcome.message);
    return wordOf(outcome);
  };
  return { buyer, open, pay, terms, clock, deposits, said, network };
}

describe('a host that was paid over a channel', () => {
  test.each<[string, object]>([
    ['another authorizer', { receiverAuthorizer: AUTHORIZERS[1] }],
    ['another delay', { withdrawDelay: 86_401 }],
  ])('gets no deposit into one of %s before a person accepts that, and nobody is asked', async (_what, other) => {
    const { buyer, pay, terms, deposits, said } = shop();
    terms.minDeposit = '1000';
    expect([await pay(), await pay()]).toEqual(['uncharged', 'uncharged']);
    Object.assign(terms, other);
    const asked: unknown[] = [];
    const confirm = async (price: unknown) => asked.push(price) > 0;
    expect([await pay({ confirm }), await pay()]).toEqual(['refused: not-pinned', 'refused: not-pinned']);
    expect(said.at(-1)).toMatch(/^seller\.test names another payment channel than 0x\w{64}, .*; nothing was signed$/);
    expect([deposits.length, asked]).toEqual([2, []]);
    expect([buyer.unpin('seller.test'), buyer.unpin('seller.test')]).toEqual([1, 0]);
    expect(await pay()).toBe('uncharged');
  });

  test('of this machine may have another: a demonstration has new keys each time', async () => {
    const { pay, terms } = shop();
    terms.minDeposit = '1000';
    expect(await pay({}, '127.0.0.1:1')).toBe('uncharged');
    terms.receiverAuthorizer = AUTHORIZERS[1];
    expect(await pay({}, '127.0.0.1:1')).toBe('uncharged');
  });

  test('gets at most one limit of deposits in a day, in one channel and in one after the other', async () => {
    const { buyer, pay, open, terms, clock, deposits, said } = shop();
    expect([await pay(), await pay()]).toEqual(['uncharged', 'refused: above-limit']);
    expect(said.at(-1)).toBe(
      'a deposit of 1 USDC after 1 USDC within a day with seller.test is above 1 USDC (--max-deposit); nothing was signed',
    );
    // Neither another process nor a person's word for another channel makes more room.
    expect(await pay({}, 'seller.test', open())).toBe('refused: above-limit');
    buyer.unpin('seller.test');
    terms.receiverAuthorizer = AUTHORIZERS[1];
    expect(await pay()).toBe('refused: above-limit');
    expect(deposits).toEqual([USDC]);
    expect(await pay({ maxDeposit: 2n * USDC })).toBe('uncharged');
    clock.now += 86_400;
    expect(await pay()).toBe('uncharged');
    expect(deposits).toHaveLength(3);
  });

  test('shares 5 USDC of a day with all others, unless the limit of a call is higher', async () => {
    const { pay, said, deposits } = shop();
    const hosts = Array.from({ length: 6 }, (_, at) => `seller-${at}.test`);
    const words: string[] = [];
    for (const host of hosts) words.push(await pay({}, host));
    expect(words).toEqual([...Array(5).fill('uncharged'), 'refused: above-limit']);
    expect(said.at(-1)).toContain('after 5 USDC within a day with all hosts is above 5 USDC (--max-deposit)');
    expect(deposits).toHaveLength(5);
    expect(await pay({ maxDeposit: 6n * USDC }, hosts[5])).toBe('uncharged');
  });

  test('that keeps a deposit for more than a week gets none, and nobody is asked', async () => {
    const { pay, terms, deposits, said } = shop();
    terms.withdrawDelay = 7 * 86_400 + 36;
    expect(await pay({ confirm: () => Promise.reject(new Error('asked')) })).toBe('refused: no-way');
    expect(said).toEqual([
      'the channel keeps a deposit for 168.01 h, and at the most 168 h are accepted; nothing was signed',
    ]);
    terms.withdrawDelay = 7 * 86_400;
    expect(await pay()).toBe('uncharged');
    expect(deposits).toEqual([USDC]);
  });
});

describe('a deposit', () => {
  const COUNTED = { channel: '0xc', host: 'h.test', network: 'eip155:5042', asset: '0xA', payer: 'p' };
  const record = (folder: string) => openRecord(folder, () => BEGAN, { name: 'm', isAlive: () => false });
  const deposit = (id: string) => ({ ...COUNTED, id, units: USDC, most: USDC, isPinned: true });
  const payment = {
    ...COUNTED,
    call: 'GET h',
    callHash: 'x',
    way: 'channel' as const,
    amount: { units: 1n, msat: null },
    payTo: '0xb',
    reference: '0xc',
    expiresAt: null,
    plan: {},
  };
  const began = (wallet: ReturnType<typeof record>): string => {
    const counted = wallet.count(payment, { rate: null, payers: ['p'], me: 'm' });
    return counted.kind === 'counted' ? counted.row.id : counted.kind;
  };

  test('that a crash left before its voucher was kept is counted once, and one that was kept stays', () => {
    const wallet = record(newFolder());
    const id = began(wallet);
    wallet.deposits.count(deposit(id));
    // The same call goes on, and signs anew.
    expect(wallet.deposits.count(deposit(id))).toBeNull();
    wallet.sign(id, { a: 'b' });
    expect(wallet.deposits.count(deposit(id))?.message).toContain('after 1 USDC within a day with h.test');
    wallet.close();
  });

  test('whose voucher was never signed is not counted, and the host is held to nothing', () => {
    const wallet = record(newFolder());
    const id = began(wallet);
    wallet.deposits.count(deposit(id));
    wallet.uncount(id);
    expect(wallet.deposits.count({ ...deposit(began(wallet)), channel: '0xd' })).toBeNull();
    wallet.close();
  });

  test('is counted in a record of an earlier percall, which knew none', () => {
    const folder = newFolder();
    record(folder).close();
    const db = new Database(join(folder, 'wallet.db'));
    db.exec('DROP TABLE deposits');
    db.close();
    const wallet = record(folder);
    expect([wallet.deposits.count(deposit('a')), wallet.deposits.count(deposit('b'))?.reason]).toEqual([
      null,
      'above-limit',
    ]);
    wallet.close();
  });

  test('whose answer was lost stays counted when a person gives the payment up', async () => {
    const { buyer, pay, network, deposits } = shop();
    network.isDown = true;
    expect(await pay()).toBe('unanswered');
    expect(buyer.drop(buyer.open()[0]?.id ?? '')).toBe(true);
    const sent = deposits.length;
    expect(await pay()).toBe('refused: above-limit');
    expect(deposits).toHaveLength(sent);
  });
});
