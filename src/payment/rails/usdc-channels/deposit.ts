import { hash } from 'node:crypto';
import { hexToBytes } from '../../../lib/hex.ts';
import type { Authorization } from '../../authorization.ts';
import type { SignedPayment } from '../../rail.ts';
import { PaymentRefused } from '../../refusal.ts';
import { EXPIRED, NONCE_USED, REVERTED } from '../../settler.ts';
import { hashAuthorization } from '../../usdc/authorization.ts';
import { depositCalldata } from './calldata.ts';
import type { ChannelPayload } from './payload.ts';
import { reason } from './payload.ts';
import { DEPOSIT_COLLECTOR, depositNonce, SETTLEMENT_BYTES } from './scheme.ts';

/** A deposit into a channel, with the voucher that it is to cover. */
export type DepositPayload = Extract<ChannelPayload, { kind: 'deposit' }>;

/** A deposit as a payment: an authorization for the collector, which the settlement contract turns into the channel's money. */
export interface DepositPayment extends SignedPayment {
  readonly payload: DepositPayload;
}

const COLLECTOR = hexToBytes(DEPOSIT_COLLECTOR);

/** Reads a deposit as a payment. The authorization's nonce follows from the channel's id, so the money cannot go to another channel. */
export function depositPayment(payload: DepositPayload): DepositPayment {
  const { config, voucher, deposit } = payload;
  const { channelId, maxClaimableAmount: max, signature } = voucher;
  const authorization: Authorization = {
    ...{ from: config.payer, to: COLLECTOR, value: deposit.amount, signature: deposit.signature },
    ...{ validAfter: deposit.validAfter, validBefore: deposit.validBefore },
    ...{ nonce: depositNonce(channelId, deposit.salt), passedTo: SETTLEMENT_BYTES },
  };
  const whole = [hashAuthorization(authorization, SETTLEMENT_BYTES), channelId, Buffer.from(`${max}`), signature];
  return {
    ...{ kind: 'signed', payload, authorization, channel: { channelId, max, signature } },
    authorizationHash: hash('sha256', Buffer.concat(whole), 'buffer'),
    get call() {
      return { to: SETTLEMENT_BYTES, data: depositCalldata(config, deposit.amount, DEPOSIT_COLLECTOR, deposit) };
    },
  };
}

/** What a deposit must keep to. Amounts in base units, times in seconds. */
export interface DepositBounds {
  readonly minDeposit: bigint;
  /** For how long the authorization must, and may, be valid from now on. */
  readonly leastValidity: number;
  readonly mostValidity: number;
}

/** Makes the checks of a deposit that need no chain. Throws PaymentRefused with the scheme's reason. `now` in Unix seconds. */
export function checkDeposit({ deposit }: DepositPayload, bounds: DepositBounds, now: number): void {
  const { amount, validAfter, validBefore } = deposit;
  const left = validBefore - BigInt(now);
  if (left < BigInt(bounds.leastValidity) || left > BigInt(bounds.mostValidity))
    throw new PaymentRefused(reason('payload_authorization_valid_before'));
  if (validAfter >= BigInt(now)) throw new PaymentRefused(reason('payload_authorization_valid_after'));
  if (amount === 0n || amount < bounds.minDeposit) throw new PaymentRefused(reason('deposit_below_min_deposit'));
}

/** The scheme's names of the ends of an authorization. It has one name for a deposit that reverted and for one whose authorization was used or cancelled. */
const REASONS: Readonly<Record<string, string>> = {
  [REVERTED]: reason('deposit_transaction_failed'),
  [NONCE_USED]: reason('deposit_transaction_failed'),
  [EXPIRED]: reason('payload_authorization_valid_before'),
};

/** Why a deposit failed, as the scheme names it. A reason without a name there stays as it is. */
export function depositReason(stored: string): string {
  return REASONS[stored] ?? stored;
}
