import { describe, expect, test } from 'vitest';
import { readAccepts } from '../../../src/discovery/challenge.ts';
import { CHAIN, gateway, PAY_TO, plain } from '../../support/market/catalogue.ts';

const OTHER = 'eip155:8453';
const read = (...accepts: unknown[]) => readAccepts(accepts, CHAIN);

describe('a seller’s accepts', () => {
  test('payable without a gateway on our chain is direct', () => {
    expect(read(plain())).toEqual({
      rail: 'direct',
      priceUsd: '0.005',
      payTo: PAY_TO,
      plainPriceUsd: null,
      networks: [CHAIN.network],
      plainNetworks: [CHAIN.network],
    });
  });

  test('payable through the gateway is gateway, and its plain networks are the others', () => {
    expect(read(plain({ network: OTHER }), gateway({ amount: '7' }), gateway({ network: OTHER }))).toEqual({
      rail: 'gateway',
      priceUsd: '0.000007',
      payTo: PAY_TO,
      plainPriceUsd: null,
      networks: [OTHER, CHAIN.network],
      plainNetworks: [OTHER],
    });
  });

  test('payable both ways on our chain is gateway, with a separate plain price, and without our chain among the plain networks', () => {
    expect(read(gateway(), plain({ amount: '6000' }), plain({ network: OTHER }))).toMatchObject({
      rail: 'gateway',
      priceUsd: '0.005',
      plainPriceUsd: '0.006',
      plainNetworks: [OTHER],
    });
  });

  test('with several entries takes the cheapest', () => {
    expect(read(plain({ amount: '9' }), plain({ amount: '8' }), plain({ amount: '10' }))?.priceUsd).toBe('0.000008');
  });

  test('in version 1 has maxAmountRequired', () => {
    const { amount: _amount, ...old } = plain();
    expect(read({ ...old, maxAmountRequired: '200' })?.priceUsd).toBe('0.0002');
  });

  test('compares addresses without letter case', () => {
    expect(read(plain({ asset: CHAIN.usdc.toUpperCase().replace('X', 'x') }))).not.toBeNull();
  });

  test.each([
    ['another network', plain({ network: OTHER })],
    ['another scheme', plain({ scheme: 'upto' })],
    ['another asset', plain({ asset: PAY_TO })],
    ['no asset', plain({ asset: undefined })],
    ['a recipient of 39 digits', plain({ payTo: `0x${'a'.repeat(39)}` })],
    ['a recipient that is a name', plain({ payTo: 'alice.eth' })],
    ['nothing to pay', plain({ amount: '0' })],
    ['a number for an amount', plain({ amount: 5000 })],
    ['a decimal amount', plain({ amount: '0.5' })],
    ['a negative amount', plain({ amount: '-5' })],
    ['an endless amount', plain({ amount: '9'.repeat(16) })],
    ['null', null],
    ['text', 'exact'],
  ])('%s is not payable for us', (_what, accept) => {
    expect(read(accept)).toBeNull();
    expect(read(accept, plain())).not.toBeNull();
  });

  test.each([[undefined], [null], [{}], ['x'], [{ 0: plain(), length: 1 }]])('%j is no list', (accepts) => {
    expect(readAccepts(accepts, CHAIN)).toBeNull();
  });

  test('is limited in length, and hostile network names are left out', () => {
    expect(read(...Array.from({ length: 50 }, () => null), plain())).toBeNull();
    expect(read(plain(), plain({ network: '<script>' }), plain({ network: 'x'.repeat(99) }))?.networks).toEqual([
      CHAIN.network,
    ]);
  });
});
