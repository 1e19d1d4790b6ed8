import { describe, expect, test } from 'vitest';
import { BadParameter } from '../../../src/errors.ts';
import { askedRail, isSoldAt, paidRail, railsOf } from '../../../src/mcp/tool.ts';

const both = railsOf({ access: 'paid', path: '/x' });
const usdc = railsOf({ access: 'paid', path: '/x', onlyOn: 'paid' });
const sats = railsOf({ access: 'paid', path: '/x', onlyOn: 'lightning' });

describe('the offer to an unpaid call', () => {
  test.each([
    ['USDC where both are sold', both, {}, null, 'usdc'],
    ['USDC without any _meta', both, undefined, null, 'usdc'],
    ['USDC by name', both, { 'percall/rail': 'usdc' }, null, 'usdc'],
    ['Lightning for the asking', both, { 'percall/rail': 'lightning' }, null, 'lightning'],
    ['Lightning unasked at the address of Lightning', both, {}, 'lightning', 'lightning'],
    ['USDC by name at the address of Lightning', both, { 'percall/rail': 'usdc' }, 'lightning', 'usdc'],
    ['Lightning unasked where there is no other way', sats, {}, null, 'lightning'],
    ['USDC where there is no other way', usdc, {}, null, 'usdc'],
    ['nothing that stands in a prototype', both, Object.create({ 'percall/rail': 'lightning' }), null, 'usdc'],
  ] as const)('is %s', (_name, rails, meta, usual, expected) => {
    expect(askedRail(meta, rails, usual)).toBe(expected);
  });

  test.each([
    ['Lightning where it is not sold', usdc, 'lightning'],
    ['USDC where it is not sold', sats, 'usdc'],
    ['a rail that is none', both, 'cheque'],
    ['null', both, null],
  ] as const)('is a fault for %s', (_name, rails, asked) => {
    expect(() => askedRail({ 'percall/rail': asked }, rails, null)).toThrow(BadParameter);
  });
});

test('an address without a rail offers every tool, and that of Lightning those that bitcoin buys', () => {
  const offered = (rail: 'lightning' | null) => [both, usdc, sats].map((rails) => isSoldAt(rail, rails));
  expect([offered(null), offered('lightning')]).toEqual([
    [true, true, true],
    [true, false, true],
  ]);
});

describe('the rail of a payment', () => {
  test.each([
    [{ accepted: { network: 'lnbtc:000000000019d6689c085ae165831e93' } }, 'lightning'],
    [{ accepted: { network: 'eip155:5042' } }, 'usdc'],
    [{ accepted: { network: 7 } }, 'usdc'],
    [{ accepted: null }, 'usdc'],
    ['nonsense', 'usdc'],
  ])('of %j is %s', (payment, rail) => {
    expect(paidRail(payment)).toBe(rail);
  });
});
