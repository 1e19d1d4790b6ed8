import { expect, test } from 'vitest';
import type { Config } from '../../../../../src/config.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { channelRequirement, channelsInfo } from '../../../../../src/payment/channels/rail.ts';
import { SETTLEMENT } from '../../../../../src/payment/channels/scheme.ts';
import { newKey, plainRequirement } from '../../../../support/usdc/payments.ts';

const { privateKey, address } = newKey();
const channels: NonNullable<Config['rails']['channels']> = {
  authorizerKey: bytesToHex(privateKey),
  withdrawDelaySeconds: 86_400,
  minDeposit: 50_000n,
  claimFrom: 1n,
  claimAfterSeconds: 1,
  depositsADay: { payer: 0, client: 0 },
};
const plain = plainRequirement(`0x${'5e'.repeat(20)}`);
const wanted = {
  ...plain,
  scheme: 'batch-settlement',
  maxTimeoutSeconds: 600,
  extra: {
    name: 'USDC',
    version: '2',
    receiverAuthorizer: address,
    withdrawDelay: 86_400,
    minDeposit: '50000',
  },
};
type Rails = Parameters<typeof channelsInfo.isOn>[0];
const railsOf = (given: Config['rails']['channels']) => ({ channels: given }) as Rails;

test('the entry of payment channels names the authorizer, the delay and the least deposit, and keeps price and recipient', () => {
  expect(channelRequirement(channels)(plain)).toEqual(wanted);
  expect(channelsInfo.requirement(railsOf(channels))(plain)).toEqual(wanted);
});

test('payment channels are on where they are configured, and are offered once their contracts are found', () => {
  expect([channelsInfo.isOn(railsOf(channels)), channelsInfo.isOn(railsOf(null))]).toEqual([true, false]);
  expect(() => channelsInfo.requirement(railsOf(null))).toThrow('payment channels are off');
  expect([channelsInfo.name, channelsInfo.isOfferedOnceProven]).toEqual(['usdc-channels', true]);
  expect(channelsInfo.contract({} as Config & Rails)).toBe(SETTLEMENT);
  expect(channelsInfo.service?.(railsOf(channels))).toEqual({ name: 'channels', isVital: false });
  expect(channelsInfo.service?.(railsOf(null))).toBeNull();
});

test('the seller’s own key is refused as the authorizer, and warned of where channels must be claimed by it first', async () => {
  const log: object[] = [];
  const judged = (seller: string, given: Config['rails']['channels'] = channels, caip2 = 'eip155:1') => {
    const config = { rails: railsOf(given), seller, network: { caip2 } } as Config;
    const store = { hasAny: async (network: string) => network === 'eip155:5042' };
    return channelsInfo.checkLedger?.(config, { channels: store } as never, {
      warn: (detail) => void log.push(detail),
    });
  };
  const upper = `0x${address.slice(2).toUpperCase()}`;
  for (const seller of [address, upper]) expect(await judged(seller)).toContain('CHANNELS_AUTHORIZER_KEY');
  expect(log).toEqual([]);
  expect(await judged(address, channels, 'eip155:5042')).toBeNull();
  expect(log).toEqual([{ seller: address }]);
  expect([await judged(newKey().address), await judged(address, null)]).toEqual([null, null]);
  expect(log).toHaveLength(1);
});
