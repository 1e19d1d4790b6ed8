import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { BadParameter } from '../../../../src/errors.ts';
import {
  LIGHTNING_ROUTE,
  LIGHTNING_TOOL,
  OTHER_WAYS,
  PATHS,
  USDC_ROUTE,
  USDC_TOOL,
} from '../../../support/payment/checkout-calls.ts';
import { ORIGIN, openCheckouts, UNREADABLE } from '../../../support/payment/checkout-world.ts';

const FAULTS: [string, Record<string, string>, string][] = [
  ['that all are missing', {}, 'a is missing, for example x; b is missing, for example y'],
  ['that one is missing', { a: '1' }, 'b is missing, for example y'],
  ['one that is unknown', { a: '1', b: '2', c: '3' }, 'c: no such parameter; there are a, b'],
  ['one that is not sold', { a: '1', b: 'unwatched' }, 'b: is not sold'],
];
const MEND = 'With a payment this request would be a 400, uncharged: mend it before you sign. This answer costs';
/** Text that no JSON of RFC 8785 can hold. */
const UNBINDABLE = { a: '\ud800', b: '2' };
const CANNOT_BIND = 'arguments: these arguments cannot be bound into an invoice';

describe('parameters', () => {
  test.each(FAULTS)('with a fault: a route in USDC names %s beside its price', async (_, params, fault) => {
    const world = await openCheckouts();
    const { status, words } = await world.call(USDC_ROUTE, { params });
    expect([status, world.sales]).toEqual([402, []]);
    expect(words).toContain(`${fault}. ${MEND}`);
    expect(words?.indexOf(fault)).toBe(0);
  });

  describe.each(OTHER_WAYS)('with a fault: %s', (_name, way) => {
    test.each(FAULTS)('refuses %s before anything is made, whatever the payment is', async (_title, params) => {
      const world = await openCheckouts();
      for (const payment of [undefined, UNREADABLE[way.money]])
        expect(await world.call(way, { params, payment })).toMatchObject({ status: 400, code: 'bad_parameter' });
      expect([world.sales, world.offered, world.invoices(), world.runs]).toEqual([[], [], [], []]);
    });
  });

  test.each(FAULTS)('with a fault: a route over Lightning says %s in its 400', async (_, params, fault) => {
    const { detail } = await (await openCheckouts()).call(LIGHTNING_ROUTE, { params });
    expect(detail).toBe(fault.replaceAll(' is missing', ': missing'));
  });

  test('of a request that has none are judged once, not for each 402', async () => {
    let judged = 0;
    const checkParams = () => {
      judged += 1;
      throw new BadParameter([{ path: 'a', message: 'is not sold' }]);
    };
    const { call } = await openCheckouts({ endpoint: { params: z.object({}) as never, checkParams } });
    for (let at = 0; at < 3; at++)
      expect((await call(USDC_ROUTE, { url: PATHS.usdc })).words).toContain(`a: is not sold. ${MEND}`);
    expect(judged).toBe(1);
  });

  test('given twice are a fault', async () => {
    const world = await openCheckouts();
    const twice = await world.call(USDC_ROUTE, { url: `${PATHS.usdc}?a=1&a=2&b=2` });
    expect(twice.words).toContain(`a: given more than once. ${MEND}`);
    expect((await world.call(LIGHTNING_ROUTE, { url: `${PATHS.lightning}?a=1&a=2&b=2` })).status).toBe(400);
  });

  test('of thousands of unknown names leave the words short', async () => {
    const names = Array.from({ length: 900 }, (_, n) => `x${n}=1`).join('&');
    const { body } = await (await openCheckouts()).call(USDC_ROUTE, { url: `${PATHS.usdc}?${names}` });
    expect(body.length).toBeLessThan(2000);
  });

  test('that cannot be judged now are no fault beside a price, and elsewhere an error of ours', async () => {
    const world = await openCheckouts();
    const params = { a: '1', b: 'away' };
    expect((await world.call(USDC_ROUTE, { params })).words).toMatch(/^Tells a thing\. /);
    for (const [, way] of OTHER_WAYS)
      expect(await world.call(way, { params })).toMatchObject({ status: 503, code: 'away' });
    expect(world.invoices()).toEqual([]);
  });

  test('are judged before the rail of a tool is looked at', async () => {
    const world = await openCheckouts({ endpoint: { onlyOn: 'paid' } });
    const faulty = { params: { a: '1' } };
    const fault = { status: 400, detail: 'b: missing, for example y' };
    expect(await world.call(USDC_TOOL, { ...faulty, meta: { 'percall/rail': 'cheque' } })).toMatchObject(fault);
    expect(await world.call(USDC_TOOL, { ...faulty, payment: UNREADABLE.lightning })).toMatchObject(fault);
  });
});

test.each([
  ['Lightning where it is not sold', 'paid', 'lightning', 'usdc'],
  ['USDC where it is not sold', 'lightning', 'usdc', 'lightning'],
  ['a rail that is none', undefined, 'cheque', 'usdc, lightning'],
  ['null', undefined, null, 'usdc, lightning'],
] as const)('a tool that is asked for %s names its rails', async (_title, onlyOn, rail, sold) => {
  const world = await openCheckouts({ endpoint: onlyOn ? { onlyOn } : {} });
  const answer = await world.call(USDC_TOOL, { meta: { 'percall/rail': rail } });
  const detail = `_meta.percall/rail: this tool can be paid by: ${sold}`;
  expect(answer).toMatchObject({ status: 400, code: 'bad_parameter', detail });
  expect(world.invoices()).toEqual([]);
});

describe('a request that no invoice can bind', () => {
  const target = 'this request target cannot be bound into an invoice';
  const body = 'a data route takes no body; send parameters in the query';
  test.each([
    ['a broken escape', LIGHTNING_ROUTE, { url: `${PATHS.lightning}?a=%zz&b=2` }, target],
    ['a body that is said to come', LIGHTNING_ROUTE, { headers: { 'content-length': '2' }, payload: '{}' }, body],
    ['a body of unknown length', LIGHTNING_ROUTE, { headers: { 'transfer-encoding': 'chunked' } }, body],
    ['arguments that are no text of Unicode', LIGHTNING_TOOL, { params: UNBINDABLE }, CANNOT_BIND],
  ])('has %s: 400 before a payment is read or an invoice made', async (_title, way, request, detail) => {
    const world = await openCheckouts();
    const expected = { status: 400, code: 'bad_parameter', detail };
    expect(await world.call(way, request)).toMatchObject(expected);
    const { headers = {}, ...rest } = request as { headers?: Record<string, string> };
    expect(await world.call(way, { ...rest, headers, payment: UNREADABLE.lightning })).toMatchObject(expected);
    expect([world.sales, world.invoices(), world.runs]).toEqual([[], [], []]);
  });

  test.each([
    ['arguments that are no object', { params: ['a'] }],
    ['a `_meta` that is no object', { meta: null }],
  ])('has %s: a tool refuses it before an invoice is made', async (_title, request) => {
    const world = await openCheckouts();
    expect(await world.call(LIGHTNING_TOOL, request)).toMatchObject({ status: 400, code: 'bad_parameter' });
    expect(world.invoices()).toEqual([]);
  });

  test('is sold for USDC all the same', async () => {
    const world = await openCheckouts();
    const params = UNBINDABLE;
    expect((await world.call(USDC_TOOL, { params })).status).toBe(402);
    const payment = await world.buy(USDC_TOOL, { params });
    expect((await world.call(USDC_TOOL, { params, payment })).status).toBe(200);
  });

  test.each(['*', ORIGIN, `${ORIGIN}?a=1&b=2`])('has the target %s, without a path', async (url) => {
    const { readTarget } = await openCheckouts();
    expect(() => readTarget(url)).toThrow(new BadParameter([{ path: '', message: target }]));
  });

  test('is none for an empty body', async () => {
    const { call } = await openCheckouts();
    expect((await call(LIGHTNING_ROUTE, { headers: { 'content-length': '0' } })).status).toBe(402);
  });
});
