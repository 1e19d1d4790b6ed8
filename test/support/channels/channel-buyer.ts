import { randomBytes } from 'node:crypto';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { addressOf, signRecoverable } from '../../../src/lib/secp256k1.ts';
import { DEPOSIT_COLLECTOR, depositNonce } from '../../../src/payment/channels/scheme.ts';
import { receiveDigest } from '../../../src/payment/usdc/authorization.ts';
import { domainSeparator } from '../../../src/payment/usdc/token.ts';
import type { ChannelConfig } from '../../../src/store/ports/channel-state.ts';
import { headerOf, type Requirement } from '../usdc/payments.ts';
import { channelOf, configJson, scheme } from './channel-payment.ts';

/** A payer's channel on chain 5042, and the PAYMENT-SIGNATURE values that it signs. Amounts in base units. */
export interface ChannelBuyer {
  readonly id: Uint8Array;
  readonly address: `0x${string}`;
  readonly config: ChannelConfig;
  /** Pays for a call by a voucher over `max` in all. */
  voucher(max: bigint): string;
  /** Puts `amount` into the channel, and pays for a call by a voucher over `max` in all. Each deposit is another authorization. */
  deposit(amount: bigint, max: bigint): string;
  /** Asks for what the channel holds beyond its charges. `charged`: all of them. */
  refund(charged: bigint): string;
}

/** The buyer with this key, on the terms of a challenge's channel entry. `salt` tells its channels apart. The native library signs, because a benchmark signs thousands beforehand. */
export function channelBuyer(
  privateKey: Uint8Array,
  requirement: Requirement,
  salt: Uint8Array = Buffer.alloc(32),
): ChannelBuyer {
  const { asset, payTo, extra, maxTimeoutSeconds } = requirement;
  const token = hexToBytes(asset);
  const terms = {
    receiver: hexToBytes(payTo),
    receiverAuthorizer: hexToBytes(String(extra.receiverAuthorizer)),
    token,
  };
  const config = channelOf(privateKey, { ...terms, withdrawDelay: Number(extra.withdrawDelay), salt });
  const [id, channelConfig] = [scheme.channelId(config), configJson(config)];
  const separator = domainSeparator(String(extra.name), String(extra.version), 5042, token);

  const header = (max: bigint, rest: Record<string, unknown>): string => {
    const signature = bytesToHex(signRecoverable(scheme.voucherDigest(id, max), privateKey));
    const voucher = { channelId: bytesToHex(id), maxClaimableAmount: String(max), signature };
    return headerOf({ x402Version: 2, accepted: requirement, payload: { channelConfig, voucher, ...rest } });
  };

  function deposit(amount: bigint, max: bigint): string {
    const own = randomBytes(32);
    const unsigned = {
      from: config.payer,
      to: hexToBytes(DEPOSIT_COLLECTOR),
      value: amount,
      validAfter: 0n,
      validBefore: BigInt(Math.floor(Date.now() / 1000) + maxTimeoutSeconds),
      nonce: depositNonce(id, BigInt(bytesToHex(own))),
      signature: new Uint8Array(),
    };
    const erc3009Authorization = {
      validAfter: '0',
      validBefore: String(unsigned.validBefore),
      salt: bytesToHex(own),
      signature: bytesToHex(signRecoverable(receiveDigest(unsigned, separator), privateKey)),
    };
    return header(max, {
      type: 'deposit',
      deposit: { amount: String(amount), authorization: { erc3009Authorization } },
    });
  }

  return {
    id,
    config,
    address: addressOf(privateKey),
    deposit,
    refund: (charged) => header(charged, { type: 'refund' }),
    voucher: (max) => header(max, { type: 'voucher' }),
  };
}

/** The channel entry of a challenge; undefined when channels are not offered. */
export function findChannelEntry(paymentRequired: string): Requirement | undefined {
  const { accepts } = JSON.parse(Buffer.from(paymentRequired, 'base64').toString('utf8')) as { accepts: Requirement[] };
  return accepts.find(({ scheme: name }) => name === 'batch-settlement');
}

/** The channel entry of a challenge. Throws when channels are not offered. */
export function channelEntry(paymentRequired: string): Requirement {
  const entry = findChannelEntry(paymentRequired);
  if (!entry) throw new Error('the challenge has no entry for channels');
  return entry;
}
