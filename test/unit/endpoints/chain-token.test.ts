import { describe, expect, test } from 'vitest';
import { chainToken } from '../../../src/endpoints/chain-token.ts';
import { NotFound } from '../../../src/errors.ts';
import { number, run, TOKEN, useFixture } from './fixture.ts';

const given = useFixture();

describe('chain/token', () => {
  test('an ERC-20', async () => {
    expect(await run(chainToken, given().sources, { address: TOKEN })).toEqual({
      address: TOKEN,
      name: 'Token',
      symbol: 'TKN',
      decimals: 18,
      totalSupply: '1000',
      totalSupplyRaw: '1000000000000000000000',
      asOfBlock: 1000,
      source: given().source,
    });
  });

  test('without decimals the human supply is null, the raw one is not', async () => {
    delete given().views[TOKEN]!['0x313ce567'];
    expect(await run(chainToken, given().sources, { address: TOKEN })).toMatchObject({
      decimals: null,
      totalSupply: null,
      totalSupplyRaw: '1000000000000000000000',
    });
  });

  test.each<[string, Record<string, string>]>([
    ['no contract', {}],
    ['no supply', { '0x18160ddd': '0x' }],
    ['an ERC-721', { '0x01ffc9a7': number(1n) }],
    [
      'a precompile that answers anything with a hash',
      Object.fromEntries(
        ['0x06fdde03', '0x95d89b41', '0x313ce567', '0x18160ddd'].map((selector) => [selector, `0x${'fe'.repeat(32)}`]),
      ),
    ],
  ])('%s is 404', async (what, answers) => {
    given().views[TOKEN] = what === 'no contract' ? {} : { ...given().views[TOKEN], ...answers };
    await expect(run(chainToken, given().sources, { address: TOKEN })).rejects.toBeInstanceOf(NotFound);
  });
});
