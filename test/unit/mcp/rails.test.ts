import { describe, expect, test } from 'vitest';
import { BadParameter } from '../../../src/errors.ts';
import { askedRail, paidRail, railsOf } from '../../../src/mcp/rails.ts';

const both = railsOf({ access: 'paid', path: '/x' });
const usdc = railsOf({ access: 'paid', path: '/x', onlyOn: 'paid' });
const sats = railsOf({ access: 'paid', path: '/x', onlyOn: 'lightning' });

describe('the offer to an unpaid call', () => {
  test.each([
    ['USDC where both are sold', both, {}, 'usdc'],
    ['USDC without any _meta', both, undefined, 'usdc'],
    ['USDC by name', both, { 'percall/rail': 'usdc' }, 'usdc'],
    ['Lightning for the asking', both, { 'percall/rail': 'lightning' }, 'lightning'],
    ['Lightning unasked where there is no other way', sats, {}, 'lightning'],
    ['USDC where there is no other way', usdc, {}, 'usdc'],
    ['nothing that stands in a prototype', both, Object.create({ 'percall/rail': 'lightning' }), 'usdc'],
  ] as const)('is %s', (_name, rails, meta, expected) => {
    expect(askedRail(meta, rails)).toBe(expected);
  });

  test.each([
    ['Lightning where it is not sold', usdc, 'lightning'],
    ['USDC where it is not sold', sats, 'usdc'],
    ['a rail that is none', both, 'cheque'],
    ['null', both, null],
  ] as const)('is a fault for %s', (_name, rails, asked) => {
    expect(() => askedRail({ 'percall/rail': asked }, rails)).toThrow(BadParameter);
  });
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
