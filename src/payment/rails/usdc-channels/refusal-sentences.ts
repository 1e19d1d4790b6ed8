import type { RefusalSentences } from '../../refusal.ts';
import { reason } from './payload.ts';

const STALE = 'Sign the next voucher over the charges in extra.channelState of the entry, plus the price.';
const CONFIG = 'Open a channel with the terms of the entry.';

const SENTENCES: RefusalSentences = {
  payload_type:
    'The payload is no voucher, deposit or refund of this scheme. Make it with a client of batch-settlement.',
  erc3009_authorization_required:
    'The deposit holds no readable EIP-3009 authorization. Put it into deposit.authorization.erc3009Authorization.',
  refund_payload: 'The refund cannot be read. Its amount is a decimal string of base units, or left out.',
  network_mismatch: 'The payment is for another network. Sign for the network of the entry.',
  channel_id_invalid: 'The voucher’s channelId is no 32 bytes in hex. Take the id of the channel’s config.',
  channel_id_mismatch: 'The voucher names another channel than its channelConfig. Sign for the id of this config.',
  voucher_signature:
    'The voucher’s signature is not the payer’s. Sign it with the key that the channel’s config names.',
  receive_authorization_signature:
    'The deposit’s signature is not the payer’s. Sign the EIP-3009 ReceiveWithAuthorization in the token’s domain.',
  receiver_mismatch: `The channel pays another receiver. ${CONFIG}`,
  receiver_authorizer_mismatch: `The channel names another receiverAuthorizer. ${CONFIG}`,
  token_mismatch: `The channel holds another token. ${CONFIG}`,
  withdraw_delay_out_of_range: `The channel’s withdrawDelay is not possible in this scheme. ${CONFIG}`,
  withdraw_delay_mismatch: `The channel has another withdrawDelay. ${CONFIG}`,
  channel_not_found: 'There is no money in this channel. Make a deposit with the next call.',
  channel_busy: 'Another request or deposit uses this channel now. Present the same payment again in a moment.',
  cumulative_amount_mismatch: `The voucher was signed over other charges than the channel’s. ${STALE}`,
  cumulative_below_claimed: `The voucher is for less than is claimed from the channel. ${STALE}`,
  cumulative_exceeds_balance: 'The channel holds too little for this call. Make another deposit with the next call.',
  deposit_below_min_deposit: 'The deposit is too small. Deposit at least extra.minDeposit of the entry.',
  deposit_simulation_failed: 'The payer’s account would not let the deposit move the money. Check the wallet.',
  deposit_transaction_failed:
    'The deposit has moved no money, or its authorization is used. Present the same payment again before you sign another deposit.',
  insufficient_balance:
    'The payer holds too little USDC for the deposit. Fund the wallet, or pay by another entry of accepts.',
  payload_authorization_valid_before:
    'The deposit’s authorization has expired, or is not valid for as long as the entry says. Sign a new one.',
  payload_authorization_valid_after:
    'The deposit’s authorization is not valid yet. Sign it with a validAfter in the past.',
  refund_no_balance: 'Nothing that is worth its gas can go back from this channel. Withdraw from the contract instead.',
  refund_amount_invalid: 'The refund is too small, or more than is left. Leave the amount out to get all that is left.',
  refund_transaction_failed: 'The refund moved no money. Ask for it again later, or withdraw from the contract.',
};

/** A sentence for each reason of the scheme that this rail gives. */
export const CHANNEL_REFUSALS: RefusalSentences = Object.fromEntries(
  Object.entries(SENTENCES).map(([name, sentence]) => [reason(name), sentence]),
);
