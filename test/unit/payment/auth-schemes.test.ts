import { describe, expect, test } from 'vitest';
import { AppError } from '../../../src/errors.ts';
import { refusingSecond, withAuthSchemes } from '../../../src/payment/http-auth.ts';
import type {
  AuthScheme,
  Credential,
  ProtocolName,
  QuotedProtocol,
  Receipt,
  RequestMessage,
} from '../../../src/payment/protocol.ts';

/** Reads a payment as its own text. */
const credentialOf = (protocol: ProtocolName, text: unknown): Credential => ({
  protocol,
  accepted: null,
  payload: { text },
  identifier: () => null,
});
const base: QuotedProtocol = {
  carries: ({ headers }) => headers['payment-signature'] !== undefined,
  read: ({ headers }) => credentialOf('x402', headers['payment-signature']),
  unpaidReason: () => 'because',
  quote: (_of, quote, error) => ({
    fields: [['payment-required', quote ? 'offer' : `none: ${error}`]],
    body: '{}',
    contentType: 'x',
  }),
  needsOffer: () => false,
  receipt: () => [['payment-response', 'receipt']],
};
const scheme = (protocol: ProtocolName, names: readonly string[]): AuthScheme => ({
  protocol,
  names,
  read: (text) => credentialOf(protocol, text),
  challenge: ({ text }) => `${names[0]} for ${text}`,
  receipt: () => [[`${protocol}-receipt`, 'receipt']],
});
const open = () => withAuthSchemes(base, [scheme('l402', ['l402', 'lsat']), scheme('mpp', ['payment'])]);

/** A request with these lines of Authorization. Node keeps the first one in `headers`. */
function message(lines: readonly string[], headers: Record<string, string> = {}): RequestMessage {
  const [authorization] = lines;
  const rawHeaders = ['Host', 'Payment b', ...lines.flatMap((line) => ['AuthoriZation', line]), 'X', 'L402 c'];
  return { method: 'GET', url: '/', headers: { ...headers, ...(authorization && { authorization }) }, rawHeaders };
}

const TWO = { status: 400, code: 'two_payments', charged: 'unknown', errors: [{ path: 'authorization' }] };
/** What reading throws; the payload's text where it throws nothing. */
function readOf(shown: RequestMessage, protocol: Pick<QuotedProtocol, 'read'> = open()): unknown {
  try {
    return protocol.read(shown).payload.text;
  } catch (error) {
    return error;
  }
}

describe('a request', () => {
  test.each([
    [['L402 a:b'], 'l402', 'L402 a:b'],
    [['lsat  a:b'], 'l402', 'lsat  a:b'],
    [['PAYMENT a'], 'mpp', 'PAYMENT a'],
    [['Basic x', 'Payment a'], 'mpp', 'Payment a'],
    [['LSAT a:b', 'L402 a:b'], 'l402', 'LSAT a:b'],
  ])('with %j presents a payment by %s', (lines, protocol, text) => {
    const shown = message(lines);
    expect([open().carries(shown), open().needsOffer(shown)]).toEqual([true, true]);
    expect(open().read(shown)).toMatchObject({ protocol, payload: { text } });
  });

  test.each([[[]], [['Basic x']], [['Bearer L402 a:b']], [['L402']], [['']]])(
    'with %j presents none of them',
    (lines) => {
      const shown = message(lines);
      expect([open().carries(shown), open().needsOffer(shown)]).toEqual([false, false]);
      const signed = message(lines, { 'payment-signature': 'p' });
      expect([open().carries(signed), open().needsOffer(signed), readOf(signed)]).toEqual([true, false, 'p']);
    },
  );

  test.each([
    ['two tokens', ['L402 a:b', 'L402 c:d'], {}],
    ['a renamed scheme with another token', ['LSAT a:b', 'L402 c:d'], {}],
    ['two schemes with the same text', ['L402 a', 'Payment a'], {}],
    ['a token beside x402', ['L402 a:b'], { 'payment-signature': 'p' }],
  ])('with %s is 400, and may have been paid', (_title, lines, headers) => {
    const error = readOf(message(lines, headers));
    expect(error).toBeInstanceOf(AppError);
    expect(error).toMatchObject(TWO);
    expect((error as AppError).message).toBe(
      'authorization: this request presents two payments; present one of them. Nothing was taken for this request',
    );
    expect((error as AppError).errors?.[0]?.message).toContain('present one of them');
  });
});

describe('a quote', () => {
  const of = { endpoint: {} as never, url: '', hint: '' };
  const quote = { invoice: { text: 'ln1' } } as never;

  test('is asked for in a line for each auth scheme, in their order, after the protocol’s own field', () => {
    const { fields, body } = open().quote(of, quote);
    expect([fields, body]).toEqual([
      [
        ['payment-required', 'offer'],
        ['www-authenticate', ['l402 for ln1', 'payment for ln1']],
      ],
      '{}',
    ]);
  });

  test('that could not be made has no line', () => {
    expect(open().quote(of, null, 'why').fields).toEqual([['payment-required', 'none: why']]);
  });
});

test('an answer has the protocol’s own receipt, and that of the auth scheme that presented the payment', () => {
  const namesOf = (protocol: ProtocolName | null): string[] => {
    const credential = protocol && credentialOf(protocol, 'x');
    return open()
      .receipt({} as Receipt, credential, 0)
      .map(([name]) => name);
  };
  expect(namesOf('mpp')).toEqual(['payment-response', 'mpp-receipt']);
  expect(namesOf('l402')).toEqual(['payment-response', 'l402-receipt']);
  expect([namesOf('x402'), namesOf(null)]).toEqual([['payment-response'], ['payment-response']]);
});

test('what is not said here stays the protocol’s own', () => {
  expect(open().unpaidReason(message([]))).toBe('because');
});

test('beside a credential of `Payment` a payment of another protocol is refused, and a token of L402 is ignored', () => {
  const by = refusingSecond(base);
  const headers = { 'payment-signature': 'p' };
  expect(readOf(message(['Payment a'], headers), by)).toMatchObject(TWO);
  expect(readOf(message(['L402 a:b'], headers), by)).toBe('p');
  expect(readOf(message([], headers), by)).toBe('p');
});
