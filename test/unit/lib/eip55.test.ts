import { getAddress } from 'viem';
import { expect, test } from 'vitest';
import { hasFittingCase } from '../../../src/lib/secp256k1.ts';
import { seed, seededRandom } from '../../support/random.ts';

const random = seededRandom('eip55');
const randomAddress = () =>
  `0x${Array.from({ length: 40 }, () => Math.floor(random() * 16).toString(16)).join('')}` as const;

test(`an address passes in lower case, in upper case and with viem's checksum (seed ${seed})`, () => {
  for (let round = 0; round < 200; round++) {
    const lower = randomAddress();
    const upper = `0x${lower.slice(2).toUpperCase()}`;
    expect([lower, upper, getAddress(lower)].map(hasFittingCase)).toEqual([true, true, true]);
  }
});

test(`an address fails when the case of any one letter of its checksum is changed (seed ${seed})`, () => {
  let changed = 0;
  for (let round = 0; round < 50; round++) {
    const right = getAddress(randomAddress());
    for (let at = 2; at < right.length; at++) {
      const letter = right[at] ?? '';
      const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
      const wrong = right.slice(0, at) + other + right.slice(at + 1);
      const digits = wrong.slice(2);
      if (other === letter || digits === digits.toLowerCase() || digits === digits.toUpperCase()) continue;
      changed += 1;
      expect(hasFittingCase(wrong), wrong).toBe(false);
    }
  }
  expect(changed).toBeGreaterThan(500);
});

test('the examples of EIP-55 itself pass', () => {
  for (const address of [
    '0x52908400098527886E0F7030069857D2E4169EE7',
    '0xde709f2102306220921060314715629080e2fb77',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ]) {
    expect(hasFittingCase(address), address).toBe(true);
  }
});
