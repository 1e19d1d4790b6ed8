import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { checkProof, LNBTC_REASONS } from '../../../../src/payment/lightning/proof.ts';
import { TESTNET } from '../../../../src/payment/lightning/terms.ts';
import {
  GONE,
  INVOICE,
  judge,
  NOW,
  outcome,
  PAY_TO,
  PAYMENT_HASH,
  PREIMAGE,
  presentation,
  put,
  REQUEST_HASH,
  type Settings,
  vectorPresentation,
} from './proof-cases.ts';

const bytes = (hex: string) => Buffer.from(hex, 'hex');

describe('a good proof', () => {
  test("is the scheme's vector, and says what was proved", () => {
    const verdict = judge(vectorPresentation());
    expect(verdict).toEqual({
      ok: true,
      proof: {
        network: 'lnbtc:000000000019d6689c085ae165831e93',
        paymentHash: new Uint8Array(bytes(PAYMENT_HASH)),
        payTo: bytes(PAY_TO),
        amountMsat: 25_000n,
        requestHash: bytes(REQUEST_HASH),
        createdAt: NOW,
        expirySeconds: 300,
      },
    });
    expect(createHash('sha256').update(bytes(PREIMAGE)).digest('hex')).toBe(PAYMENT_HASH);
  });

  test.each<[string, Settings]>([
    ['on the test network', { 'both.network': TESTNET.id, 'invoice.currency': 'tb' }],
    ['with the method left out on both sides', { 'both.extra.assetTransferMethod': GONE }],
    ['with the method left out by the client', { 'accepted.extra.assetTransferMethod': GONE }],
    ['with the method left out by the server', { 'requirement.extra.assetTransferMethod': GONE }],
    ['whose invoice names its payee', { 'invoice.namesPayee': true }],
    ['with another invoice in the requirement', { 'requirement.extra.invoice': 'lnbc1another' }],
    ["with something present in the place of the requirement's invoice", { 'requirement.extra.invoice': 0 }],
    ['with an extra field that only the client adds', { 'accepted.extra.mine': { a: 1 } }],
    ["with a client's own `__proto__`", { 'accepted.extra.__proto__': { paymentFlow: 'deferred' } }],
    [
      'with members that no step checks',
      { 'payment.extensions': 5, 'payment.payload.more': 1, 'accepted.more': 1, 'requirement.more': 2 },
    ],
    ['with declared fields in another order', { 'accepted.extra.declared': { list: [1, { deep: null }], name: 'a' } }],
    ['with a declared `__proto__` on both sides', { 'both.extra.__proto__': { a: 1 } }],
    ['with a declared `constructor` on both sides', { 'both.extra.constructor': 'text' }],
    [
      'bound by mcp:1',
      {
        'both.extra.requestBindingProfile': 'mcp:1',
        'both.extra.requestBindingParams': { server: 'https://api.example.com/mcp', metadata: [] },
      },
    ],
    ['bound with header names', { 'both.extra.requestBindingParams': { headers: ['accept', 'x-a'] } }],
    ['of an invoice of one millisatoshi', { 'both.amount': '1', 'invoice.amountMsat': 1n }],
    [
      'of an invoice over all bitcoin',
      { 'both.amount': '2100000000000000000', 'invoice.amountMsat': 2_100_000_000_000_000_000n },
    ],
    ['of an invoice that lasts an hour', { 'both.maxTimeoutSeconds': 3600, 'invoice.expirySeconds': 3600 }],
    ['in capitals, as a QR code has it', { 'accepted.extra.invoice': INVOICE.toUpperCase() }],
  ])('%s', (_, settings) => {
    expect(outcome(settings)).toBe('ok');
  });
});

describe('boundaries are valid themselves', () => {
  const at = (now: number, skewSeconds?: number) => outcome({ now }, skewSeconds === undefined ? {} : { skewSeconds });
  const FUTURE = 'invalid_exact_lnbtc_invoice_created_in_future';
  const EXPIRED = 'invalid_exact_lnbtc_invoice_expired';

  test('an invoice may be created 60 s ahead of our clock, and no more', () => {
    expect([at(NOW - 60), at(NOW - 61)]).toEqual(['ok', FUTURE]);
  });

  test('a payment has 60 s after the expiry to arrive, and no more', () => {
    expect([at(NOW + 300), at(NOW + 301), at(NOW + 360), at(NOW + 361)]).toEqual(['ok', 'ok', 'ok', EXPIRED]);
  });

  test('another skew moves both', () => {
    expect([at(NOW - 5, 5), at(NOW - 6, 5), at(NOW + 305, 5), at(NOW + 306, 5)]).toEqual(['ok', FUTURE, 'ok', EXPIRED]);
    expect([at(NOW, 0), at(NOW - 1, 0), at(NOW + 300, 0), at(NOW + 301, 0)]).toEqual(['ok', FUTURE, 'ok', EXPIRED]);
  });

  test("the longest timeout is the caller's", () => {
    const longest = (maxTimeoutSeconds: number) => outcome({}, { maxTimeoutSeconds });
    expect([longest(300), longest(299)]).toEqual(['ok', 'invalid_exact_lnbtc_max_timeout']);
  });
});

describe('own properties only', () => {
  const { payment, requirement } = vectorPresentation();
  const reasonOf = (given: unknown, required: unknown) => {
    const verdict = checkProof(given, required, { now: NOW });
    return verdict.ok ? 'ok' : verdict.reason;
  };
  const accepted = payment.accepted as Record<string, unknown>;
  const parsed = (value: object) => JSON.parse(`{"__proto__":${JSON.stringify(value)}}`);

  test('what is inherited is absent', () => {
    expect(reasonOf(payment, requirement)).toBe('ok');
    expect(reasonOf(Object.create(payment), requirement)).toBe('unsupported_scheme');
    expect(reasonOf(payment, Object.create(requirement))).toBe('unsupported_scheme');
    expect(reasonOf({ ...payment, accepted: Object.create(accepted) }, requirement)).toBe('unsupported_scheme');
    expect(
      reasonOf({ ...payment, accepted: { ...accepted, extra: Object.create(accepted.extra as object) } }, requirement),
    ).toBe('invalid_exact_lnbtc_payment_flow');
    expect(reasonOf({ ...payment, payload: Object.create({ preimage: PREIMAGE }) }, requirement)).toBe(
      'invalid_exact_lnbtc_preimage_missing',
    );
  });

  test('what a parsed `__proto__` holds is absent', () => {
    expect(reasonOf(parsed(payment), requirement)).toBe('unsupported_scheme');
    expect(reasonOf(payment, parsed(requirement))).toBe('unsupported_scheme');
    expect(reasonOf({ ...payment, accepted: parsed(accepted) }, requirement)).toBe('unsupported_scheme');
    expect(reasonOf({ ...payment, payload: parsed({ preimage: PREIMAGE }) }, requirement)).toBe(
      'invalid_exact_lnbtc_preimage_missing',
    );
  });

  test.each([
    ['preimage', PREIMAGE, { 'payment.payload.preimage': GONE }, 'invalid_exact_lnbtc_preimage_missing'],
    ['accepted', accepted, { 'payment.accepted': GONE }, 'unsupported_scheme'],
    ['paymentFlow', 'upfront', { 'accepted.extra.paymentFlow': GONE }, 'invalid_exact_lnbtc_payment_flow'],
    [
      'declared',
      { name: 'a', list: [1, { deep: null }] },
      { 'accepted.extra.declared': GONE },
      'invalid_exact_lnbtc_extra_mismatch',
    ],
    ['headers', [], { 'both.extra.requestBindingParams': {} }, 'invalid_exact_lnbtc_request_binding'],
  ] as const)('a polluted Object.prototype.%s is not read', (name, value, settings, reason) => {
    const built = presentation(settings);
    Object.defineProperty(Object.prototype, name, { value, configurable: true });
    try {
      expect(judge(built)).toEqual({ ok: false, reason });
    } finally {
      Reflect.deleteProperty(Object.prototype, name);
    }
  });
});

describe('any value at all gives a verdict', () => {
  const trap = () => {
    throw new Error('trap');
  };
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const looped: Record<string, unknown> = {};
  looped.accepted = looped;
  const values: unknown[] = [
    undefined,
    null,
    true,
    0,
    Number.NaN,
    1n,
    '',
    'text',
    Symbol('a'),
    () => 1,
    [],
    {},
    new Date(0),
    new Map(),
    looped,
    new Proxy({}, { get: trap, getOwnPropertyDescriptor: trap, ownKeys: trap, getPrototypeOf: trap }),
    revoked.proxy,
    Object.defineProperty({}, 'accepted', { get: trap, enumerable: true }),
  ];
  const places = ['payment', 'requirement', 'payment.accepted', 'payment.payload', 'payment.payload.preimage'];
  const members = ['scheme', 'network', 'amount', 'asset', 'payTo', 'maxTimeoutSeconds', 'extra'];
  const extras = ['paymentFlow', 'invoice', 'requestHash', 'requestBindingProfile', 'requestBindingParams', 'declared'];
  const sides = ['requirement', 'accepted', 'both'];
  const paths = [
    ...places,
    ...sides.flatMap((side) =>
      [...members, ...extras.map((extra) => `extra.${extra}`)].map((member) => `${side}.${member}`),
    ),
  ];

  test.each(paths)('in the place of %s', (path) => {
    const outcomes = values.map((value) => {
      const built = presentation();
      put(built, path, value);
      const verdict = judge(built);
      return verdict.ok ? 'ok' : verdict.reason;
    });
    // The requirement's invoice need only be there, and any JSON is equal to itself in a declared field.
    const mayPass = path === 'requirement.extra.invoice' || path === 'both.extra.declared';
    expect(outcomes.filter((reason) => reason !== 'ok' && !LNBTC_REASONS.includes(reason))).toEqual([]);
    expect(outcomes.includes('ok')).toBe(mayPass);
  });

  test('an accessor is never invoked', () => {
    let invoked = 0;
    const counting = (owner: object, name: string) =>
      Object.defineProperty(owner, name, {
        get: () => {
          invoked += 1;
          return 'exact';
        },
        enumerable: true,
      });
    const { payment, requirement } = presentation();
    counting(payment.accepted as object, 'scheme');
    counting(requirement, 'scheme');
    expect(checkProof(payment, requirement, { now: NOW })).toEqual({ ok: false, reason: 'unsupported_scheme' });
    expect(invoked).toBe(0);
  });

  test('the preimage is in no verdict', () => {
    const text = (settings: Settings) => {
      const verdict = judge(presentation(settings));
      const bytesAsHex = (_: string, value: unknown) =>
        value instanceof Uint8Array
          ? Buffer.from(value).toString('hex')
          : typeof value === 'bigint'
            ? String(value)
            : value;
      return JSON.stringify(verdict.ok ? { ...verdict.proof } : verdict, bytesAsHex);
    };
    const texts = [{}, { 'invoice.createdAt': NOW - 361 }, { 'invoice.hashes': [] }].map(text);
    expect(texts.filter((each) => each.includes(PREIMAGE))).toEqual([]);
    expect(texts[0]).toContain(PAYMENT_HASH.slice(0, 4));
  });
});
