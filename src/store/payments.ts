import { parseAfter } from './channel-row.ts';
import type { Payment } from './ports/payments.ts';

// --- A payment's row

/** Selects payments, as `paymentOf` reads them. */
export const SELECT_PAYMENT = `
  SELECT id, network, contract, payer, nonce, state, boot_id AS "bootId", amount, pay_to AS "payTo",
         valid_after AS "validAfter", valid_before AS "validBefore", signature,
         authorization_hash AS "authorizationHash", request_hash AS "requestHash", price, charged,
         payer_has_code = 1 AS "payerHasCode", client_hash AS "clientHash", identifier_hash AS "identifierHash",
         checked_block AS "checkedBlock", transaction_hash AS "transaction", block, reason,
         reserved_at AS "reservedAt", ended_at AS "endedAt", deliveries, delivered_at AS "deliveredAt", calldata,
         protocol, channel_id AS "channelId", voucher_max AS "voucherMax", channel_after AS "channelAfter"
    FROM usdc_payments`;

/** What a statement over SELECT_PAYMENT returns. */
export interface PaymentRow extends Omit<Payment, 'channel'> {
  readonly channelId: Uint8Array | null;
  readonly voucherMax: bigint | null;
  readonly channelAfter: string | null;
}

/** The row as the port's type. */
export function paymentOf({ channelId, voucherMax, channelAfter, ...payment }: PaymentRow): Payment {
  if (channelId === null || voucherMax === null) return { ...payment, channel: null };
  const after = channelAfter === null ? null : parseAfter(channelAfter);
  return { ...payment, channel: { channelId, max: voucherMax, after } };
}
