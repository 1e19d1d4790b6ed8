import { describe, expect, test } from 'vitest';
import { AppError, BadParameter, TooMany, Unavailable, UpstreamFailed } from '../../../src/errors.ts';
import { asAppError } from '../../../src/http/problems.ts';
import {
  chargedUnknown,
  checkable,
  orSettlementUnknown,
  PaymentRefused,
  settlementUnknown,
} from '../../../src/payment/refusal.ts';

/** What a run ends with. */
const endOf = (run: Promise<unknown>): Promise<unknown> => run.catch((error: unknown) => error);
const failing = (error: unknown) => async () => {
  throw error;
};

test('an open settlement is 503, says that it is not known whether money moved, and asks for the same payment again', () => {
  const cause = new Error('the disk');
  expect(settlementUnknown(cause)).toMatchObject({
    status: 503,
    code: 'settlement_unknown',
    charged: 'unknown',
    retryAfterSeconds: 2,
    cause,
    message: expect.stringContaining('present the same payment again'),
  });
});

test('once an intent is stored, whatever fails leaves the settlement unknown; what succeeds is passed on', async () => {
  expect(await orSettlementUnknown(async () => 'the row')).toBe('the row');
  for (const error of [new Error('a bug'), new UpstreamFailed('chain', 'away'), new PaymentRefused('refused')])
    expect(await endOf(orSettlementUnknown(failing(error)))).toMatchObject({
      status: 503,
      code: 'settlement_unknown',
      charged: 'unknown',
      cause: error,
    });
});

test('a check whose source fails is 503, and its log line has the failure, also of an authorization that reverted before', async () => {
  const cause = new UpstreamFailed('chain', 'away');
  const check = () => checkable(failing(cause));
  const unavailable = { status: 503, code: 'settlement_unavailable', retryAfterSeconds: 5, cause };
  expect(await endOf(check())).toMatchObject({ ...unavailable, charged: false });
  expect(await endOf(chargedUnknown(check))).toMatchObject({ ...unavailable, charged: 'unknown' });
});

describe('an authorization that reverted before', () => {
  test('is served as any other', async () => {
    expect(await chargedUnknown(async () => 'the answer')).toBe('the answer');
  });

  test('never answers charged false: each failure keeps its code and says charged unknown', async () => {
    const cause = new Error('away');
    const failed = new UpstreamFailed('chain', 'no answer', cause);
    const end = await endOf(chargedUnknown(failing(failed)));
    expect(end).toBeInstanceOf(AppError);
    expect(end).toMatchObject({ status: 502, code: 'upstream_failed', charged: 'unknown', cause });
    expect((end as AppError).message).toBe(
      'chain: no answer (whether this payment has moved money is open: present the same one again)',
    );
    expect((end as AppError).retryAfterSeconds).toBeUndefined();
    expect((end as AppError).errors).toBeUndefined();
  });

  test('keeps a failure’s status, Retry-After, list of errors and header fields', async () => {
    expect(await endOf(chargedUnknown(failing(new TooMany('payer_failures', 'wait', 17))))).toMatchObject({
      status: 429,
      code: 'payer_failures',
      charged: 'unknown',
      retryAfterSeconds: 17,
    });
    expect(await endOf(chargedUnknown(failing(new Unavailable('chain_busy', 'busy', 0))))).toMatchObject({
      retryAfterSeconds: 0,
    });
    const errors = [{ path: 'a', message: 'is missing' }];
    expect(await endOf(chargedUnknown(failing(new BadParameter(errors))))).toMatchObject({ status: 400, errors });
    const headers = { 'x-a': 'b' };
    expect(await endOf(chargedUnknown(failing(new AppError(418, 'teapot', 'short', { headers }))))).toMatchObject({
      headers,
    });
  });

  test('keeps an answer that says already that it is not known', async () => {
    const unknown = settlementUnknown();
    expect(await endOf(chargedUnknown(failing(unknown)))).toBe(unknown);
  });

  test('keeps a refusal: it says why no money can move', async () => {
    const refused = new PaymentRefused('invalid_exact_evm_insufficient_balance');
    expect(await endOf(chargedUnknown(failing(refused)))).toBe(refused);
  });

  test('says charged unknown also when a fault of ours ends the call', async () => {
    const end = await endOf(chargedUnknown(failing(new Error('the reply does not match its schema'))));
    expect(asAppError(end)).toMatchObject({ status: 500, code: 'internal', charged: 'unknown' });
  });
});
