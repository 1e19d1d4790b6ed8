import { describe, expect, test } from 'vitest';
import { deliver, refusedSettlement, Underpaid } from '../../../src/payment/receipt.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import type { Payment } from '../../../src/store/ports/payments.ts';
import { reservation } from '../../support/ledger/ledger-rows.ts';

const BODY = Buffer.from('{"answer":42}');
const HASH = Buffer.alloc(32, 0xab);

/** A settled row: 1,000 units were signed and paid. */
function settled(more: Partial<Payment> = {}): Payment {
  return {
    ...reservation('a', 'a', { amount: 1000n, price: 1000n }),
    state: 'settled',
    signature: null,
    charged: 1000n,
    payerHasCode: false,
    checkedBlock: 1,
    transaction: HASH,
    block: 9,
    reason: null,
    endedAt: 2,
    deliveries: 0,
    deliveredAt: null,
    channel: null,
    calldata: null,
    ...more,
  };
}

/** What is thrown instead of a delivery. */
function heldBack(payment: Payment, price: bigint): unknown {
  try {
    return deliver(payment, BODY, price);
  } catch (error) {
    return error;
  }
}

describe('an answer', () => {
  test('leaves with its receipt when what was paid covers its price', () => {
    expect(deliver(settled(), BODY, 1000n)).toEqual({
      body: BODY,
      at: settled().endedAt,
      receipt: {
        success: true,
        network: 'eip155:5042',
        amount: '1000',
        payer: `0x${'09'.repeat(20)}`,
        transaction: `0x${'ab'.repeat(32)}`,
      },
    });
    expect(deliver(settled(), BODY, 500n).body).toBe(BODY);
  });

  test('that is settled by a transfer without a transaction yet says so with an empty one', () => {
    expect(deliver(settled({ transaction: null }), BODY, 1000n).receipt.transaction).toBe('');
  });

  test('is held back when less was paid than it costs, and the answer does not say that nothing was charged', () => {
    const error = heldBack(settled(), 1001n);
    expect(error).toBeInstanceOf(Underpaid);
    expect(error).toMatchObject({
      status: 500,
      code: 'underpaid',
      charged: 'unknown',
      cause: { payment: 'a', paid: '1000', price: '1001' },
    });
    expect(JSON.stringify((error as Underpaid).message)).not.toContain('1000');
  });

  test('is judged by what the evidence says was paid, not by what was signed', () => {
    expect(heldBack(settled({ charged: 999n }), 1000n)).toBeInstanceOf(Underpaid);
    expect(heldBack(settled({ charged: 0n }), 1000n)).toBeInstanceOf(Underpaid);
    expect(deliver(settled({ amount: 1n, charged: 1000n }), BODY, 1000n).body).toBe(BODY);
  });

  test('of a row from before that was kept is judged by what was signed', () => {
    expect(deliver(settled({ charged: null }), BODY, 1000n).body).toBe(BODY);
    expect(heldBack(settled({ charged: null }), 1001n)).toBeInstanceOf(Underpaid);
  });

  test.each(['reserved', 'settling', 'unknown', 'failed'] as const)('of a payment that is %s is held back', (state) => {
    expect(heldBack(settled({ state }), 1n)).toBeInstanceOf(Underpaid);
  });
});

describe('a settlement that was refused', () => {
  test('is 402 with its reason, in the challenge and in PAYMENT-RESPONSE', () => {
    const refused = refusedSettlement(settled({ state: 'failed', reason: 'invalid_exact_evm_nonce_already_used' }));
    expect(refused).toBeInstanceOf(PaymentRefused);
    expect(refused.reason).toBe('invalid_exact_evm_nonce_already_used');
    expect(refused.settlement).toEqual({
      success: false,
      errorReason: 'invalid_exact_evm_nonce_already_used',
      network: 'eip155:5042',
      payer: `0x${'09'.repeat(20)}`,
      transaction: '',
    });
  });

  test('without a reason is x402’s own word for that', () => {
    expect(refusedSettlement(settled({ state: 'failed', reason: null })).reason).toBe('unexpected_settle_error');
  });
});
