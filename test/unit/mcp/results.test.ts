import { expect, test } from 'vitest';
import { AppError, BadParameter, UpstreamFailed, withMembers } from '../../../src/errors.ts';
import { problem } from '../../../src/mcp/results.ts';
import { AnswerGone } from '../../../src/payment/receipt.ts';
import type { Payment } from '../../../src/store/ports/payments.ts';

test('a problem has the members of its error, which never replace the standard ones', () => {
  const failed = withMembers(new UpstreamFailed('page.example', 'timed out'), {
    up: false,
    status: 200,
    charged: true,
  });
  expect(failed).toBeInstanceOf(AppError);
  expect(problem(failed, 'id').structuredContent).toEqual({
    up: false,
    status: 502,
    code: 'upstream_failed',
    charged: false,
    detail: 'page.example: timed out',
    requestId: 'id',
  });
});

test('an answer that is gone names its code, says that it was charged, and brings its receipt where there is one', () => {
  const receipt = { success: true, transaction: '', network: 'eip155:5042', payer: '0xab' } as const;
  expect(problem(new AnswerGone({} as Payment, receipt), 'id')).toMatchObject({
    isError: true,
    structuredContent: { status: 410, code: 'answer_gone', charged: true },
    _meta: { 'x402/payment-response': receipt },
  });
  expect(problem(new AnswerGone({} as Payment), 'id')).not.toHaveProperty('_meta');
});

test('several faults are counted as far as they are known: those after the tenth are not named', () => {
  const faults = (count: number) => Array.from({ length: count }, (_, at) => ({ path: `a${at}`, message: 'wrong' }));
  const detailOf = (count: number) => problem(new BadParameter(faults(count)), 'id').structuredContent?.detail;
  expect(detailOf(1)).toBe('a0: wrong');
  expect(detailOf(2)).toBe('at least 2 faults in the arguments: see errors');
  expect(detailOf(10)).toBe('at least 10 faults in the arguments: see errors');
});
