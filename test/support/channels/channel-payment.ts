import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { addressOf, signRecoverable } from '../../../src/lib/secp256k1.ts';
import { createScheme } from '../../../src/payment/channels/scheme.ts';
import type { ChannelConfig } from '../../../src/store/ports/channel-state.ts';
import { USDC } from '../usdc/payments.ts';

/** The key that signs claims and refunds for the receiver, in tests of what needs no chain. */
export const AUTHORIZER_KEY = Buffer.alloc(32, 0xa1);

/** A channel's terms for tests of what needs no chain. */
export const CHANNEL_TERMS = {
  receiver: Buffer.alloc(20, 0x5e),
  receiverAuthorizer: hexToBytes(addressOf(AUTHORIZER_KEY)),
  token: hexToBytes(USDC),
  withdrawDelay: 86_400,
};

/** The digests of chain 5042. */
export const scheme = createScheme(5042);

/** A channel of a payer under the terms above. */
export function channelOf(privateKey: Uint8Array, more: Partial<ChannelConfig> = {}): ChannelConfig {
  const payer = hexToBytes(addressOf(privateKey));
  return { payer, payerAuthorizer: payer, ...CHANNEL_TERMS, salt: Buffer.alloc(32), ...more };
}

/** A config as clients write it. */
export function configJson(config: ChannelConfig) {
  const { withdrawDelay, ...bytes } = config;
  const texts = Object.entries(bytes).map(([name, value]) => [name, bytesToHex(value)]);
  return { ...Object.fromEntries(texts), withdrawDelay } as Record<string, string | number>;
}

/** A voucher's payload as a client sends it. */
export function voucherPayload(privateKey: Uint8Array, max: bigint, more: Partial<ChannelConfig> = {}) {
  const config = channelOf(privateKey, more);
  const channelId = scheme.channelId(config);
  const signature = bytesToHex(signRecoverable(scheme.voucherDigest(channelId, max), privateKey));
  return {
    type: 'voucher',
    channelConfig: configJson(config),
    voucher: { channelId: bytesToHex(channelId), maxClaimableAmount: String(max), signature },
  };
}
