import { expect, test } from 'vitest';
import { AppError, NotFound, Unavailable } from '../../../../../src/errors.ts';
import {
  afterPayment,
  paymentInFlight,
  refusedWithoutOffer,
  WORTH,
} from '../../../../../src/payment/lightning/serve-granted.ts';

test.each(['granted', 'unclaimed', 'challenged'] as const)(
  'an error to a buyer who has paid keeps its status and says that money may have moved, and what a proof that is %s is worth',
  (worth) => {
    const reported = afterPayment(new Unavailable('endpoint_busy', 'too many calls', 7), worth);
    expect(reported).toMatchObject({ status: 503, code: 'endpoint_busy', charged: 'unknown', retryAfterSeconds: 7 });
    expect(reported.message).toBe(`too many calls ${WORTH[worth]}`);
  },
);

test('an error without a time to try again gets one of a second, because the proof is valid for another try', () => {
  expect(afterPayment(new NotFound('nothing here'), 'granted')).toMatchObject({ status: 404, retryAfterSeconds: 1 });
});

test('an error that says already that money may have moved is passed on unchanged', () => {
  const error = new AppError(503, 'ledger_unavailable', 'present it again', { charged: 'unknown' });
  expect(afterPayment(error, 'granted')).toBe(error);
});

test('a bug stays a bug: the buyer gets nothing of its message, and the log has it as the cause', () => {
  const bug = new TypeError('secret');
  const reported = afterPayment(bug, 'unclaimed');
  expect(reported).toMatchObject({
    status: 500,
    code: 'internal',
    charged: 'unknown',
    retryAfterSeconds: 1,
    cause: bug,
  });
  expect(reported.message).toBe(WORTH.unclaimed);
});

test('a proof that is not claimed is valid for its invoice’s 300 seconds and the allowed skew of 60', () => {
  expect(WORTH.unclaimed).toContain('360 seconds');
});

test('a refusal without a new offer keeps the offer’s error, says why the payment was refused, and that money may have moved', () => {
  const away = refusedWithoutOffer(new Unavailable('lightning_unavailable', 'no node', 300), 'invalid_challenge');
  expect(away).toMatchObject({
    status: 503,
    code: 'lightning_unavailable',
    charged: 'unknown',
    retryAfterSeconds: 300,
  });
  expect(away.message).toBe('The payment was refused: invalid_challenge. No new offer can be made now: no node');
  expect(refusedWithoutOffer(new NotFound('nothing here'), 'x')).toMatchObject({ status: 404, retryAfterSeconds: 1 });
  const bug = new TypeError('secret');
  expect(refusedWithoutOffer(bug, 'x')).toMatchObject({
    status: 500,
    code: 'internal',
    charged: 'unknown',
    cause: bug,
  });
  expect(refusedWithoutOffer(bug, 'x').message).not.toContain('secret');
});

test('a payment that is served on another connection gets 409, money taken or not, with a time to try again of a second', () => {
  const reported = paymentInFlight();
  expect(reported).toMatchObject({ status: 409, code: 'payment_in_flight', charged: 'unknown', retryAfterSeconds: 1 });
});
