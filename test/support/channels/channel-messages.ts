import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { addressOf, signRecoverable } from '../../../src/lib/secp256k1.ts';
import { DEPOSIT_COLLECTOR, depositNonce } from '../../../src/payment/channels/scheme.ts';
import { receiveDigest } from '../../../src/payment/usdc/authorization.ts';
import { domainSeparator } from '../../../src/payment/usdc/token.ts';
import { USDC } from '../usdc/payments.ts';
import type { UnitChannel } from './channel-ledger.ts';
import { configJson, scheme } from './channel-payment.ts';

/** What a client may do wrong. Amounts in base units, times in Unix seconds. */
export interface MessageChanges {
  /** Of a deposit or a refund. */
  readonly amount?: bigint;
  readonly validAfter?: number;
  readonly validBefore?: number;
  readonly salt?: number;
  readonly isVoucherForged?: boolean;
  readonly isDepositForged?: boolean;
}

const FORGED = `0x${'11'.repeat(65)}`;
const separator = domainSeparator('USDC', '2', 5042, hexToBytes(USDC));

/** The payload of a voucher up to `max`, as a client sends it, of a deposit or of a request for a refund. */
export function channelMessage(
  type: 'voucher' | 'deposit' | 'refund',
  channel: UnitChannel,
  max: bigint,
  changes: MessageChanges = {},
) {
  const { id, hex, config, privateKey } = channel;
  const signed = bytesToHex(signRecoverable(scheme.voucherDigest(id, max), privateKey));
  const signature = changes.isVoucherForged ? FORGED : signed;
  const { amount } = changes;
  return {
    type,
    channelConfig: configJson(config),
    voucher: { channelId: hex, maxClaimableAmount: String(max), signature },
    ...(type === 'deposit' && { deposit: depositOf(channel, changes) }),
    ...(type === 'refund' && amount !== undefined && { amount: String(amount) }),
  };
}

/** The payer's key signs the deposit, which may be another one than the key that signs the channel's vouchers. */
function depositOf({ id, config, privateKey }: UnitChannel, changes: MessageChanges) {
  const { amount = 5000n, validAfter = 0, validBefore = 0, salt = 7, isDepositForged = false } = changes;
  const isPayer = addressOf(privateKey) === bytesToHex(config.payer);
  const authorization = {
    from: config.payer,
    to: hexToBytes(DEPOSIT_COLLECTOR),
    value: amount,
    validAfter: BigInt(validAfter),
    validBefore: BigInt(validBefore),
    nonce: depositNonce(id, BigInt(salt)),
    signature: new Uint8Array(),
  };
  const signature = bytesToHex(signRecoverable(receiveDigest(authorization, separator), privateKey));
  const erc3009Authorization = {
    validAfter: String(validAfter),
    validBefore: String(validBefore),
    salt: `0x${salt.toString(16).padStart(64, '0')}`,
    signature: isDepositForged || !isPayer ? FORGED : signature,
  };
  return { amount: String(amount), authorization: { erc3009Authorization } };
}
