import type { PaymentRequirements } from '@x402/core/types';
import type { ChannelsConfig } from '../../../config/rails.ts';
import { USDC_DOMAIN } from '../../evm/token.ts';
import type { RailInfo } from '../../rail.ts';

/** The scheme's name in a requirement. */
export const SCHEME = 'batch-settlement';

/**
 * Seconds for which a stock client makes a deposit's authorization valid. A channel whose deposit is unclear takes no other payment until the
 * authorization has expired, so the time is short. It covers the longest handler and settlement many times.
 */
const MAX_TIMEOUT_SECONDS = 600;

/** The entry of a challenge for payment channels. The channel's id depends on the recipient, the token, the authorizer and the delay, not on the price. */
export function channelRequirement(plain: PaymentRequirements, channels: ChannelsConfig): PaymentRequirements {
  const { authorizer, withdrawDelaySeconds: withdrawDelay, minDeposit } = channels;
  const extra = { ...USDC_DOMAIN, receiverAuthorizer: authorizer, withdrawDelay, minDeposit: minDeposit.toString() };
  return { ...plain, scheme: SCHEME, maxTimeoutSeconds: MAX_TIMEOUT_SECONDS, extra };
}

/** Payment channels. It is one of several ways to pay, and is offered only where its contracts are found and our relayer can settle. */
export const channelsInfo: RailInfo = {
  name: 'usdc-channels',
  isOn: ({ channels }) => channels !== null,
  entry: (plain, { channels }) => {
    if (!channels) throw new Error('payment channels are off');
    return channelRequirement(plain, channels);
  },
  isHiddenWhileClosed: true,
  service: () => null,
};
