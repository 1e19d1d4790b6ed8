import { paymentChannel, type VoucherColumns } from '../channel-row.ts';
import type { Pools, Statement } from '../db/connections.ts';
import type { Payment } from '../ports/payments.ts';

/** Selects payments with the columns that the reader below expects. */
export const SELECT_PAYMENT = `SELECT id, network, contract, payer, nonce, state, boot_id AS "bootId", amount, pay_to AS "payTo",
  valid_after AS "validAfter", valid_before AS "validBefore", signature, authorization_hash AS "authorizationHash",
  request_hash AS "requestHash", price, charged, payer_has_code = 1 AS "payerHasCode", client_hash AS "clientHash",
  identifier_hash AS "identifierHash", checked_block AS "checkedBlock", transaction_hash AS "transaction", block, reason,
  reserved_at AS "reservedAt", ended_at AS "endedAt", deliveries, delivered_at AS "deliveredAt", calldata, protocol, channel_id, voucher_max, channel_after
  FROM usdc_payments`;

/** Reads payments with a statement over `SELECT_PAYMENT`. */
export function createPaymentRows({ read }: Pools): (query: Statement) => Promise<Payment[]> {
  return async (query) => {
    const rows = await read<Omit<Payment, 'channel'> & VoucherColumns>(query);
    return rows.map(({ channel_id, voucher_max, channel_after, ...payment }) => ({
      ...payment,
      channel: paymentChannel({ channel_id, voucher_max, channel_after }),
    }));
  };
}
