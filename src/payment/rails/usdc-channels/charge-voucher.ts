import { hash } from 'node:crypto';
import { Unavailable } from '../../../errors.ts';
import { keccak256 } from '../../../lib/secp256k1.ts';
import type { VoucherSale } from '../../../store/ports/channels.ts';
import type { Payment } from '../../../store/ports/sales.ts';
import { settlementUnknown } from '../../doubt.ts';
import { hashClient, type Ledger } from '../../ledger.ts';
import type { PaidOrder } from '../../rail.ts';
import { word } from '../../usdc/token.ts';
import type { ChannelPayload } from './payload.ts';
import { SETTLEMENT_BYTES } from './scheme.ts';

/** A voucher that is presented for a call. Its signature is valid. */
export interface PresentedVoucher {
  readonly channelId: Uint8Array;
  readonly payload: ChannelPayload;
}

export interface ChargeVoucherOptions {
  ledger: Pick<Ledger, 'charge'>;
  network: string;
}

/** Stores the charge and the answer. Null when the voucher does not fit the channel any more. Throws `settlement_unknown` when the store may have done it. */
export async function chargeVoucher(
  { ledger, network }: ChargeVoucherOptions,
  voucher: PresentedVoucher,
  order: PaidOrder,
  body: Uint8Array,
): Promise<Payment | null> {
  try {
    return await ledger.charge(saleOf(voucher, order, network), body);
  } catch (error) {
    // A store whose connection broke may have stored the charge. The same voucher then gets the answer.
    throw error instanceof Unavailable ? error : settlementUnknown(error);
  }
}

/** A voucher's nonce in the ledger's key. No two vouchers of one payer have the same. */
export function nonceOf({ channelId, payload }: PresentedVoucher): Uint8Array {
  return keccak256(Buffer.concat([channelId, word(payload.voucher.maxClaimableAmount)]));
}

function saleOf(
  voucher: PresentedVoucher,
  order: PaidOrder,
  network: string,
): Omit<VoucherSale, 'id' | 'bootId' | 'reservedAt'> {
  const { channelId, payload } = voucher;
  const { config, voucher: signed } = payload;
  const { price, route, requestHash, identifierHash, identity, protocol } = order;
  const { maxClaimableAmount: max, signature } = signed;
  const nonce = nonceOf(voucher);
  const authorizationHash = hash('sha256', Buffer.concat([SETTLEMENT_BYTES, nonce, signature]), 'buffer');
  return {
    ...{ network, contract: SETTLEMENT_BYTES, payer: config.payer, nonce, authorizationHash },
    // A voucher has no times of its own.
    ...{ amount: price, price, payTo: config.receiver, validAfter: 0n, validBefore: 0n },
    ...{ requestHash, identifierHash, clientHash: hashClient(nonce, identity), route, protocol },
    channel: { channelId, max, signature },
  };
}
