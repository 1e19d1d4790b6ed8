import { secp256k1 } from '@noble/curves/secp256k1.js';
import { describe, expect, test } from 'vitest';
import { isPublicKey } from '../../../src/lib/secp256k1.ts';
import { seed, seededRandom } from '../../support/random.ts';

const bytes = (hex: string) => Buffer.from(hex, 'hex');
const GENERATOR = '79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798';

describe('isPublicKey', () => {
  test.each([`02${GENERATOR}`, `03${GENERATOR}`])('takes the point %s', (hex) => {
    expect(isPublicKey(bytes(hex))).toBe(true);
  });

  test.each([
    ['an x off the curve', `02${'00'.repeat(31)}05`],
    ['an x beyond the field', `02${'ff'.repeat(32)}`],
    ['zero', `02${'00'.repeat(32)}`],
    ['another prefix', `04${GENERATOR}`],
    ['an uncompressed point', Buffer.from(secp256k1.Point.BASE.toBytes(false)).toString('hex')],
    ['a byte too few', `02${GENERATOR.slice(2)}`],
    ['a byte too many', `02${GENERATOR}00`],
    ['nothing', ''],
  ])('refuses %s', (_, hex) => {
    expect(isPublicKey(bytes(hex))).toBe(false);
  });

  test(`agrees with another implementation on 300 random candidates (seed ${seed})`, () => {
    const random = seededRandom('public-key');
    const candidates = Array.from({ length: 300 }, () =>
      Buffer.from([2 + Math.floor(random() * 2), ...Array.from({ length: 32 }, () => Math.floor(random() * 256))]),
    );
    const ours = candidates.map(isPublicKey);
    expect(ours).toEqual(candidates.map((key) => secp256k1.utils.isValidPublicKey(key, true)));
    expect(new Set(ours).size).toBe(2);
  });
});
