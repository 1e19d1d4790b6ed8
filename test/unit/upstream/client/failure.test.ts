import { describe, expect, test } from 'vitest';
import { describeFailure, ExchangeFailed, moreTelling } from '../../../../src/upstream/client/failure.ts';

const failed = (code: string) => describeFailure(Object.assign(new Error(code), { code }), false);

describe('a failure to connect', () => {
  test.each(['ENETUNREACH', 'EADDRNOTAVAIL', 'EMFILE', 'ENFILE', 'ENOBUFS'])(
    'by %s may be on our side, and its words do not accuse the host',
    (code) => {
      const { at, mayBeOurs, message } = failed(code);
      expect([at, mayBeOurs]).toEqual(['connecting', true]);
      expect(message).toMatch(/from here$|^this service/);
    },
  );

  test.each(['ECONNREFUSED', 'EHOSTUNREACH', 'ETIMEDOUT', 'CERT_HAS_EXPIRED', 'ECONNRESET'])(
    'by %s is the host’s',
    (code) => {
      expect(failed(code).mayBeOurs).toBe(false);
    },
  );
});

describe('of the failures of several addresses', () => {
  const [noRoute, refused, timedOut] = [failed('ENETUNREACH'), failed('ECONNREFUSED'), failed('ETIMEDOUT')];

  test.each([
    [[refused, noRoute], refused],
    [[noRoute, refused], refused],
    [[refused, timedOut], refused],
    [[noRoute, noRoute], noRoute],
  ] as const)('the one that is told says something about the host', (failures, told) => {
    const all = failures.reduce<ExchangeFailed | null>(moreTelling, null);
    expect(all).toBeInstanceOf(ExchangeFailed);
    expect(all).toBe(told);
  });
});
