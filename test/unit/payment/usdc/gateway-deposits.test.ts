import { describe, expect, test } from 'vitest';
import { ANSWERED, openGatewaySale, WALLET } from '../../../support/payment/usdc-world.ts';
import { newKey, USDC } from '../../../support/usdc/payments.ts';

// What a payer has at the Gateway, as that reports it, decides before anything else is asked.

const POOR = { reason: 'insufficient_balance' };
/** What is asked before the endpoint runs, of a payment that is new here. */
const CHECKED = ['balances', 'reserve', 'verify', 'transfers', 'run'];

describe('a deposit at the Gateway', () => {
  test.each([
    ['the price', 1000n, 0n, true],
    ['a unit less than the price', 999n, 0n, false],
    ['nothing at all', 0n, 0n, false],
    ['the price and what its open payments take', 1700n, 700n, true],
    ['a unit less than that', 1699n, 700n, false],
  ])('of %s is judged before anything else is asked', async (_, deposit, open, ok) => {
    const { sell, pay, owe, row, asked } = await openGatewaySale();
    const payment = pay({ deposit });
    if (open > 0n) await owe(payment, open);
    // What the payer owes on the chain does not count, nor what other payers owe.
    await owe(payment, 10n ** 9n, USDC);
    await owe(pay(), 10n ** 9n);
    const end = sell({}, payment);
    if (ok) expect(await end).toMatchObject(ANSWERED);
    else await expect(end).rejects.toMatchObject(POOR);
    expect((await row(payment))?.state).toBe(ok ? 'settled' : undefined);
    // What has not even the price alone is refused before anything is written.
    const refused = deposit < 1000n ? ['balances'] : ['balances', 'reserve'];
    expect(ok ? asked.slice(0, CHECKED.length) : asked).toEqual(ok ? CHECKED : refused);
  });

  test.each([
    ['7', 7_000_000n],
    ['7.5', 7_500_000n],
    ['0.000001', 1n],
    ['0.00000100', 1n],
    ['0', 0n],
    ['123456789012.123456', 123_456_789_012_123_456n],
  ])('that is reported as %s USDC pays %i base units, and none more', async (balance, units) => {
    const { sell, pay, gateway } = await openGatewaySale();
    const payment = (value: bigint) => pay({ value, deposit: value });
    gateway.script('/v1/balances', ({ body }) => ({
      json: { balances: [{ domain: 26, depositor: body.sources[0].depositor, balance }] },
    }));
    await expect(sell({ price: units + 1n }, payment(units + 1n))).rejects.toMatchObject(POOR);
    if (units > 0n) expect(await sell({ price: units }, payment(units))).toMatchObject(ANSWERED);
  });

  test('counts for a payer however its address is written, and not on another chain or for another payer', async () => {
    const { sell, pay, gateway, asked } = await openGatewaySale();
    const report = (change: (depositor: string) => object) =>
      gateway.script('/v1/balances', ({ body }) => {
        const { depositor } = body.sources[0];
        return { json: { balances: [{ domain: 26, depositor, balance: '1', ...change(depositor) }] } };
      });
    report((depositor) => ({ depositor: depositor.toUpperCase().replace('0X', '0x') }));
    expect(await sell()).toMatchObject(ANSWERED);
    asked.length = 0;
    for (const change of [{ domain: 0 }, { depositor: newKey().address }]) {
      report(() => change);
      await expect(sell({ price: 1n }, pay({ value: 1n }))).rejects.toMatchObject(POOR);
    }
    expect(asked).toEqual(['balances', 'balances']);
  });

  const reported = (balance: string) => ({ balances: [{ domain: 26, depositor: WALLET, balance }] });
  test.each<[string, { status?: number; json: object }]>([
    ['has no such service', { status: 404, json: {} }],
    ['fails', { status: 500, json: {} }],
    ['answers without balances', { json: { token: 'USDC' } }],
    ['reports a negative balance', { json: reported('-1') }],
    ['reports a balance past six places', { json: reported('0.0000001') }],
    ['reports no number', { json: reported('much') }],
  ])('is not known where the Gateway %s: nothing is sold, and no payer is called poor', async (_, answer) => {
    const { sell, gateway, asked } = await openGatewaySale();
    gateway.script('/v1/balances', () => answer);
    await expect(sell()).rejects.toMatchObject({ status: 503, code: 'settlement_unavailable', charged: false });
    expect(asked).toEqual(['balances']);
  });

  test('is asked for together with others of one moment, twenty in a request, and each payer gets its own', async () => {
    const { sell, pay, requests } = await openGatewaySale();
    const rich = Array.from({ length: 48 }, (_, at) => pay({ deposit: 1000n + BigInt(at) }));
    const [poor, none] = [pay({ deposit: 999n }), pay({ deposit: 0n })];
    const all = [poor, ...rich.slice(0, 24), none, ...rich.slice(24)];
    const ends = await Promise.allSettled(all.map((payment, at) => sell({ client: `client ${at}` }, payment)));
    const refused = ends.flatMap((end, at) => (end.status === 'rejected' ? [[all[at], end.reason]] : []));
    expect(refused).toMatchObject([poor, none].map((payment) => [payment, POOR]));
    const sizes = requests('/v1/balances').map(({ body }) => body.sources.length);
    expect(sizes.sort((a, b) => a - b)).toEqual([10, 20, 20]);
  });

  test('is asked for in turns: a client that would hold more than is left for others is refused at once', async () => {
    const { sell, pay, asked } = await openGatewaySale();
    const crowd = Array.from({ length: 201 }, () => sell({ client: 'greedy' }, pay({ deposit: 0n })));
    // Awaited later, and it may come first.
    const other = expect(sell({ client: 'other' }, pay({ deposit: 0n }))).rejects.toMatchObject(POOR);
    const ends = await Promise.allSettled(crowd);
    expect(ends.filter((end) => end.status === 'rejected' && end.reason.reason === POOR.reason)).toHaveLength(200);
    expect(ends.at(-1)).toMatchObject({ reason: { status: 503, code: 'gateway_busy', retryAfterSeconds: 1 } });
    await other;
    expect(asked.includes('reserve')).toBe(false);
  });

  test('is not waited for by a buyer who has gone', async () => {
    const { sell, pay, gateway, asked } = await openGatewaySale();
    const leaver = new AbortController();
    gateway.script('/v1/balances', () => {
      leaver.abort(new Error('gone'));
      return null;
    });
    await expect(sell({ signal: leaver.signal }, pay())).rejects.toThrow('gone');
    expect(asked).toEqual(['balances']);
  });
});
