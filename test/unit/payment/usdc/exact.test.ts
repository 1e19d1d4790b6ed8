import { describe, expect, test } from 'vitest';
import { hexToBytes } from '../../../../src/lib/hex.ts';
import { hashAuthorization } from '../../../../src/payment/usdc/authorization.ts';
import { ANSWERED, openExactSale, SHARING, WALLET } from '../../../support/payment/usdc-world.ts';
import { newKey, USDC } from '../../../support/usdc/payments.ts';

// The rail `usdc-exact`: what it asks of the chain and in which order, what it refuses, and what it then sells.

const INSUFFICIENT = { reason: 'invalid_exact_evm_insufficient_balance' };
const USED = { reason: 'invalid_exact_evm_nonce_already_used' };
const EXPIRED = { reason: 'invalid_exact_evm_payload_authorization_valid_before' };
const MOVED_NOTHING = { reason: 'invalid_exact_evm_transaction_failed' };
const UNKNOWN = { status: 503, code: 'settlement_unknown', charged: 'unknown' };
const READ = 'read a signed payer';

describe('a payment of the token', () => {
  test('is sold after one read of its payer, and kept with all that was signed, for this contract', async () => {
    const { sell, pay, row, asked } = await openExactSale();
    const payment = pay();
    expect(await sell({}, payment)).toMatchObject({ ...ANSWERED, receipt: { success: true, amount: '1000' } });
    expect(asked).toEqual([READ, 'reserve', 'run', 'settle']);
    const contract = hexToBytes(USDC);
    const { from, to, value, validAfter, validBefore } = payment.authorization;
    expect(await row(payment)).toMatchObject({
      state: 'settled',
      contract: Buffer.from(contract),
      payer: Buffer.from(from),
      payTo: Buffer.from(to),
      amount: value,
      charged: value,
      validAfter,
      validBefore,
      authorizationHash: hashAuthorization(payment.authorization, contract),
      // 1,200 blocks before the read, because providers differ in height.
      checkedBlock: 800,
      payerHasCode: false,
    });
  });

  test('buys nothing and asks nothing while nothing can be settled, or the payer is refused', async () => {
    const { sell, says, asked } = await openExactSale();
    says.unavailable = 'the queue itself';
    await expect(sell()).rejects.toMatchObject({
      status: 503,
      code: 'settlement_unavailable',
      message: expect.stringContaining('the queue itself'),
    });
    Object.assign(says, { unavailable: undefined, payerRefused: 'its settlements move nothing' });
    await expect(sell()).rejects.toMatchObject({ status: 429, code: 'payer_refused' });
    expect(asked).toEqual([]);
  });

  test.each<[string, object]>([
    ['the payment of another seller', { payTo: newKey().address }],
    ['another token', { asset: SHARING }],
    ['another price', { amount: '999' }],
    ['another network', { network: 'eip155:1' }],
  ])('buys nothing while it names %s as its terms, whatever was signed', async (_, change) => {
    const { sell, pay, asked } = await openExactSale();
    const payment = pay();
    const named = { ...payment, accepted: { ...payment.accepted, ...change } };
    const reason = 'network' in change ? 'invalid_exact_evm_network_mismatch' : 'No matching payment requirements';
    await expect(sell({}, named)).rejects.toMatchObject({ reason });
    expect(asked).toEqual([]);
    expect(await sell({}, payment)).toMatchObject(ANSWERED);
  });

  test('buys nothing on a route that is too cheap for a lone transfer', async () => {
    const { sell, pay, asked } = await openExactSale({ exactFrom: 1000n });
    const refused = { reason: 'No matching payment requirements', detail: expect.stringContaining('lone transfer') };
    await expect(sell({ price: 999n }, pay({ value: 999n }))).rejects.toMatchObject(refused);
    expect(asked).toEqual([]);
    expect(await sell()).toMatchObject(ANSWERED);
  });

  test('is shown to the books by its transfer on the chain', async () => {
    const { sell, pay, row, settler } = await openExactSale();
    const payment = pay();
    await sell({}, payment);
    const sold = await row(payment);
    if (!sold) throw new Error('no row');
    expect(await settler.books?.compare([sold], 100)).toEqual([{ kind: 'shown' }]);
  });

  test('must outlast serving and settling, and is not valid for longer than clients sign for', async () => {
    const { sell, pay, clock, asked } = await openExactSale();
    const lasting = (seconds: number) => sell({}, pay({ validBefore: BigInt(Math.floor(clock.now / 1000) + seconds) }));
    for (const seconds of [20, 605_501]) await expect(lasting(seconds)).rejects.toMatchObject(EXPIRED);
    expect(asked).toEqual([]);
    for (const seconds of [21, 605_500]) expect(await lasting(seconds)).toMatchObject(ANSWERED);
  });
});

describe('the balance of a payer', () => {
  test.each([
    ['the price', 1000n, 0n, true],
    ['a unit less than the price', 999n, 0n, false],
    ['the price and what its open payments take', 1700n, 700n, true],
    ['a unit less than the price and its open payments', 1699n, 700n, false],
  ])(
    'that is %s decides, also about open payments that take from it by other contracts',
    async (_, holds, open, ok) => {
      for (const contract of [USDC, SHARING]) {
        const { sell, pay, payer, owe, row, asked } = await openExactSale();
        payer.holds = holds;
        const payment = pay();
        if (open > 0n) await owe(payment, open, contract);
        // What a payer has in the Gateway, and what other payers owe, does not count.
        await owe(payment, 10n ** 9n, WALLET);
        await owe(pay(), 10n ** 9n, contract);
        const end = sell({}, payment);
        if (ok) expect(await end).toMatchObject(ANSWERED);
        else await expect(end).rejects.toMatchObject(INSUFFICIENT);
        expect((await row(payment))?.state).toBe(ok ? 'settled' : undefined);
        // What has not even the price alone is refused before anything is written.
        expect(asked.includes('reserve')).toBe(holds >= 1000n);
        expect(asked.includes('run')).toBe(ok);
      }
    },
  );

  test('that was too low a moment ago is not read again for three seconds', async () => {
    const { sell, pay, payer, clock, asked } = await openExactSale();
    const key = newKey();
    payer.holds = 999n;
    await expect(sell({}, pay({ key }))).rejects.toMatchObject(INSUFFICIENT);
    expect(asked).toEqual([READ]);
    clock.now += 1500;
    // What it holds by now is not known: it may be enough.
    await expect(sell({}, pay({ key }))).rejects.toMatchObject({
      status: 429,
      code: 'payer_short_of_funds',
      retryAfterSeconds: 2,
      charged: false,
    });
    clock.now += 1499;
    await expect(sell({}, pay({ key }))).rejects.toMatchObject({ retryAfterSeconds: 1 });
    expect(asked).toEqual([READ]);
    payer.holds = 1000n;
    clock.now += 1;
    expect(await sell({}, pay({ key }))).toMatchObject(ANSWERED);
    expect(asked.slice(0, 2)).toEqual([READ, READ]);
  });

  test('that was too low is read for an amount that it can pay, and for another payer', async () => {
    const { sell, pay, payer, asked } = await openExactSale();
    const key = newKey();
    payer.holds = 999n;
    await expect(sell({}, pay({ key }))).rejects.toMatchObject(INSUFFICIENT);
    expect(await sell({ price: 999n }, pay({ key, value: 999n }))).toMatchObject(ANSWERED);
    await expect(sell()).rejects.toMatchObject(INSUFFICIENT);
    expect(asked.filter((one) => one === READ)).toHaveLength(3);
  });

  test('is read again where only open payments exceed it, because they can end at any moment', async () => {
    const { sell, pay, payer, owe, asked } = await openExactSale();
    const key = newKey();
    payer.holds = 1500n;
    const first = pay({ key });
    await owe(first, 501n);
    await expect(sell({}, first)).rejects.toMatchObject(INSUFFICIENT);
    await expect(sell({}, pay({ key }))).rejects.toMatchObject(INSUFFICIENT);
    expect(asked).toEqual([READ, 'reserve', READ, 'reserve']);
  });
});

describe('a used authorization', () => {
  test('that is new here was spent elsewhere: it is refused, without a look at the evidence', async () => {
    const { sell, pay, pays, row, asked } = await openExactSale();
    const payment = pay();
    pays(payment);
    await expect(sell({}, payment)).rejects.toMatchObject(USED);
    expect([asked, await row(payment)]).toEqual([[READ], null]);
  });

  test('that a third party sends between its review and the sale is not judged before its next review', async () => {
    const { sell, sellInVain, pay, pays, afterNextRead, clock, asked } = await openExactSale();
    const payment = pay();
    await sellInVain(payment);
    afterNextRead(() => pays(payment));
    await expect(sell({}, payment)).rejects.toMatchObject(UNKNOWN);
    expect(asked).toEqual([READ, READ]);
    clock.now += 1000;
    expect(await sell({}, payment)).toMatchObject(ANSWERED);
  });
});

describe('an authorization whose settlement moved nothing', () => {
  test('buys again while it is unused, by two reads of its payer alone', async () => {
    const { sell, sellInVain, pay, row, asked } = await openExactSale();
    const payment = pay();
    expect(await sellInVain(payment)).toMatchObject(MOVED_NOTHING);
    expect(await row(payment)).toMatchObject({ state: 'failed', ...MOVED_NOTHING });
    expect(await sell({}, payment)).toMatchObject(ANSWERED);
    // The settlement reads the evidence before it sends it again.
    expect(asked).toEqual([READ, READ, 'reserve', 'run', 'look from 800 as settle', 'settle']);
    expect(await row(payment)).toMatchObject({ state: 'settled', charged: 1000n });
  });

  test.each([
    ['the block of its own first read', 800, false],
    ['the block of the review, where an old row has none', 1800, true],
  ])(
    'has paid where others sent it since: it is looked for from %s, after verified buyers, and not sent',
    async (_, from, isOld) => {
      const { sell, sellInVain, pay, pays, forgetBlocks, head, row, asked } = await openExactSale();
      const payment = pay();
      await sellInVain(payment);
      pays(payment);
      head.block = 3000;
      if (isOld) forgetBlocks();
      expect(await sell({}, payment)).toMatchObject(ANSWERED);
      const kept = isOld ? 0 : 800;
      expect(asked).toEqual([READ, `look from ${from} as collect`, 'reserve', 'run', `look from ${kept} as settle`]);
      expect(await row(payment)).toMatchObject({ state: 'settled', charged: 1000n });
    },
  );

  test('is ruled out where it was cancelled since', async () => {
    const { sell, sellInVain, pay, cancels, row, asked } = await openExactSale();
    const payment = pay();
    await sellInVain(payment);
    cancels(payment);
    await expect(sell({}, payment)).rejects.toMatchObject(USED);
    expect(asked).toEqual([READ, 'look from 800 as collect']);
    expect(await row(payment)).toMatchObject({ state: 'failed', ...USED });
  });

  test('is looked up once it has run out, because it may have been used before that', async () => {
    const { sell, sellInVain, pay, pays, clock, row, asked } = await openExactSale();
    clock.now -= clock.now % 1000;
    const validBefore = BigInt(clock.now / 1000 + 100);
    const [unused, used] = [pay({ validBefore }), pay({ validBefore })];
    for (const payment of [unused, used]) await sellInVain(payment);
    clock.now += 99_000;
    // Too late to be settled, and not yet ruled out.
    await expect(sell({}, unused)).rejects.toMatchObject(EXPIRED);
    expect([asked, (await row(unused))?.reason]).toEqual([[READ], MOVED_NOTHING.reason]);
    clock.now += 1000;
    await expect(sell({}, unused)).rejects.toMatchObject(EXPIRED);
    expect(asked.slice(1)).toEqual([READ, 'look from 800 as collect']);
    expect(await row(unused)).toMatchObject({ state: 'failed', ...EXPIRED });
    pays(used);
    expect(await sell({}, used)).toMatchObject(ANSWERED);
  });

  test('is not judged while its use cannot be seen, and looked up once a second', async () => {
    const { sell, sellInVain, pay, hides, clock, row, asked } = await openExactSale();
    const payment = pay();
    await sellInVain(payment);
    hides(payment);
    for (const looked of [1, 1, 2]) {
      await expect(sell({}, payment)).rejects.toMatchObject(UNKNOWN);
      expect(asked.filter((one) => one === 'look from 800 as collect')).toHaveLength(looked);
      if (asked.length > 2) clock.now += 1000;
    }
    expect(asked.filter((one) => one === READ)).toHaveLength(3);
    expect(await row(payment)).toMatchObject({ state: 'failed', ...MOVED_NOTHING });
  });
});

describe('an account with code', () => {
  test('buys after a simulation that the token accepts', async () => {
    const { sell, pay, payer, row, asked } = await openExactSale();
    payer.hasCode = true;
    const payment = pay();
    expect(await sell({}, payment)).toMatchObject(ANSWERED);
    expect(asked).toEqual([READ, 'reserve', 'simulate', 'run', 'settle']);
    expect(await row(payment)).toMatchObject({ payerHasCode: true, checkedBlock: 800 });
  });

  test('is refused where the simulation moves nothing', async () => {
    const { sell, payer, asked } = await openExactSale();
    Object.assign(payer, { hasCode: true, pays: false });
    await expect(sell()).rejects.toMatchObject({ reason: 'invalid_exact_evm_transaction_simulation_failed' });
    expect(asked).toEqual([READ, 'reserve', 'simulate']);
  });

  test('that has not signed itself buys where its contract says that it did, and is read once', async () => {
    const { sell, pay, payer, asked } = await openExactSale();
    Object.assign(payer, { hasCode: true, agrees: true });
    const signedByOther = { from: newKey().address };
    expect(await sell({}, pay(signedByOther))).toMatchObject(ANSWERED);
    expect(asked).toEqual(['read an unproven payer', 'reserve', 'simulate', 'run', 'settle']);
    payer.agrees = false;
    await expect(sell({}, pay(signedByOther))).rejects.toMatchObject({ reason: 'invalid_exact_evm_signature' });
    expect(asked.slice(5)).toEqual(['read an unproven payer']);
  });

  test('buys nothing while accounts with code are refused, and is not simulated; plain accounts buy on', async () => {
    const { sell, payer, says, asked } = await openExactSale();
    says.codeRefused = 'the budget is used up';
    payer.hasCode = true;
    await expect(sell()).rejects.toMatchObject({
      status: 503,
      code: 'settlement_unavailable',
      message: expect.stringContaining('the budget is used up'),
    });
    payer.hasCode = false;
    expect(await sell()).toMatchObject(ANSWERED);
    expect(asked).toEqual([READ, 'reserve', READ, 'reserve', 'run', 'settle']);
  });

  test('that holds too little is refused for that first, and is not simulated', async () => {
    const { sell, pay, payer, owe, says, asked } = await openExactSale();
    says.codeRefused = 'the budget is used up';
    Object.assign(payer, { hasCode: true, holds: 1000n });
    const payment = pay();
    await owe(payment, 1n);
    await expect(sell({}, payment)).rejects.toMatchObject(INSUFFICIENT);
    payer.holds = 0n;
    await expect(sell()).rejects.toMatchObject(INSUFFICIENT);
    expect(asked).toEqual([READ, 'reserve', READ]);
  });
});
