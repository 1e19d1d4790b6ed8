import { recoverAddress } from '../../../lib/secp256k1.ts';
import type { ChannelConfig } from '../../../store/ports/channel-state.ts';
import { PaymentRefused } from '../../refusal.ts';
import { type ChannelPayload, reason, type Voucher } from './payload.ts';
import type { Scheme } from './scheme.ts';

/** What a channel must be made out to so that it pays here. */
export interface ChannelTerms {
  /** 20 bytes each. */
  readonly receiver: Uint8Array;
  readonly receiverAuthorizer: Uint8Array;
  readonly token: Uint8Array;
  /** Seconds. */
  readonly withdrawDelay: number;
}

const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

/** The contract's bounds of `withdrawDelay`, in seconds (MIN_WITHDRAW_DELAY, MAX_WITHDRAW_DELAY). */
const DELAYS = { least: 900, most: 2_592_000 };

/**
 * Judges what needs neither chain nor ledger, and returns the channel's id. The first rule that fails is the reason, by the scheme's name:
 * 1. the channel's id is the one that its config gives;
 * 2. the channel pays to us, in our token, under our authorizer and delay;
 * 3. the voucher is signed by the channel's key, in the one form that the contract takes: 65 bytes, v 27 or 28, a low s. A library that takes
 *    more would let us serve for a voucher that can never be claimed.
 * A channel without a key of its own (payerAuthorizer 0) is refused under rule 3: its payer may be a contract that changes its mind after it was served.
 * The signature comes before every rule that depends on the channel's state, because an answer about that state repeats the last voucher.
 */
export function checkVoucher({ config, voucher }: ChannelPayload, terms: ChannelTerms, scheme: Scheme): Uint8Array {
  const channelId = scheme.channelId(config);
  if (!same(channelId, voucher.channelId)) throw new PaymentRefused(reason('channel_id_mismatch'));
  checkTerms(config, terms);
  if (!isSigned(channelId, voucher, config, scheme)) throw new PaymentRefused(reason('voucher_signature'));
  return channelId;
}

function checkTerms(config: ChannelConfig, terms: ChannelTerms): void {
  const { withdrawDelay: delay } = config;
  if (!same(config.receiver, terms.receiver)) throw new PaymentRefused(reason('receiver_mismatch'));
  if (!same(config.receiverAuthorizer, terms.receiverAuthorizer))
    throw new PaymentRefused(reason('receiver_authorizer_mismatch'));
  if (!same(config.token, terms.token)) throw new PaymentRefused(reason('token_mismatch'));
  if (delay < DELAYS.least || delay > DELAYS.most) throw new PaymentRefused(reason('withdraw_delay_out_of_range'));
  if (delay !== terms.withdrawDelay) throw new PaymentRefused(reason('withdraw_delay_mismatch'));
}

function isSigned(
  channelId: Uint8Array,
  voucher: Voucher,
  { payerAuthorizer }: ChannelConfig,
  scheme: Scheme,
): boolean {
  const digest = scheme.voucherDigest(channelId, voucher.maxClaimableAmount);
  const signer = recoverAddress(digest, voucher.signature);
  // A recovered address is never zero, so that a channel without a key ends here.
  return signer !== null && same(signer, payerAuthorizer);
}
