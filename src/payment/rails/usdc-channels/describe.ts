import type { PaymentRequirements } from '@x402/core/types';
import type { ChannelsConfig } from '../../../config/rails.ts';
import { hexToBytes } from '../../../lib/hex.ts';
import { addressOf } from '../../../lib/secp256k1.ts';
import type { RailInfo } from '../../rail.ts';
import { USDC_DOMAIN } from '../../usdc/token.ts';
import { CHANNEL_REFUSALS } from './refusal-sentences.ts';
import { SETTLEMENT } from './scheme.ts';

/** The scheme's name in a requirement. */
export const SCHEME = 'batch-settlement';

/**
 * Seconds for which a stock client makes a deposit's authorization valid. A channel whose deposit is unclear takes no other payment until the
 * authorization has expired, so the time is short. It covers the longest handler and settlement many times.
 */
export const DEPOSIT_SECONDS = 600;

/** Makes the entry of a challenge for payment channels. The channel's id depends on the recipient, the token, the authorizer and the delay, not on the price. */
export function channelEntry({ authorizerKey, withdrawDelaySeconds, minDeposit }: ChannelsConfig) {
  const extra = {
    ...USDC_DOMAIN,
    receiverAuthorizer: addressOf(hexToBytes(authorizerKey)),
    withdrawDelay: withdrawDelaySeconds,
    minDeposit: minDeposit.toString(),
  };
  return (plain: PaymentRequirements): PaymentRequirements => ({
    ...{ ...plain, scheme: SCHEME, maxTimeoutSeconds: DEPOSIT_SECONDS, extra },
  });
}

/** Gas of a call, of 50 whose channel is claimed alone (docs/benchmarks.md, "What a call costs the seller"). */
const CALL_GAS = 5700n;

/** Payment channels. They are one of several ways to pay, and are offered only where their contracts are found. */
export const channelsInfo: RailInfo = {
  name: 'usdc-channels',
  isOn: ({ channels }) => channels !== null,
  contract: () => SETTLEMENT,
  // A deposit does. A voucher takes from the channel, and is never open.
  takesFromBalance: true,
  entry: (plain, { channels }) => {
    if (!channels) throw new Error('payment channels are off');
    return channelEntry(channels)(plain);
  },
  gasOfCall: () => CALL_GAS,
  isOfferedOnceProven: true,
  refusals: CHANNEL_REFUSALS,
  service: ({ channels }) => channels && { name: 'channels', isVital: false },
};
