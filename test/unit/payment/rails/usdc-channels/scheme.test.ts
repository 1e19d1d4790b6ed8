import { computeChannelId } from '@x402/evm/batch-settlement/client';
import { describe, expect, test } from 'vitest';
import { BATCH_SETTLEMENT, DEPOSIT_COLLECTOR as PLACED_COLLECTOR } from '../../../../../dev/contracts.ts';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import { recoverAddress } from '../../../../../src/lib/secp256k1.ts';
import {
  createScheme,
  DEPOSIT_COLLECTOR,
  depositNonce,
  SETTLEMENT,
} from '../../../../../src/payment/channels/scheme.ts';
import { configJson } from '../../../../support/channels/channel-payment.ts';

/** The digests that the scheme's own contract gave for this channel on chain 5042. */
const CONFIG = {
  payer: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  payerAuthorizer: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  receiver: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  receiverAuthorizer: '0x90F79bf6EB2c4f870365E785982E1f101E93b906',
  token: '0x3600000000000000000000000000000000000000',
  withdrawDelay: 86_400,
  salt: `0x${'00'.repeat(32)}`,
} as const;
const ID = '0x7079e3d666d15fab77eeb12a54367d07dc723ce2711533632e93980d935f0bb5';
const SIGNATURE =
  '0x4210bc23f093723157bfff9d01f1a4cb3f3bbacae3ec494949aa581d3d3740a91379375dc65a8e8dee56f407e7a4f81b38bf159554079b280e37fde7d9182be61c';

const scheme = createScheme(5042);
const { withdrawDelay, ...texts } = CONFIG;
const bytes = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, hexToBytes(text)]));
const config = { ...bytes, withdrawDelay } as unknown as Parameters<typeof scheme.channelId>[0];
const id = hexToBytes(ID);

test('the scheme’s addresses are those at which the embedded network has its contracts', () => {
  expect([SETTLEMENT, DEPOSIT_COLLECTOR]).toEqual(
    [BATCH_SETTLEMENT, PLACED_COLLECTOR].map((each) => each.toLowerCase()),
  );
});

describe('the digests of the scheme', () => {
  test('of a channel are the contract’s, the second time from memory, and another chain’s are others', () => {
    expect(bytesToHex(scheme.channelId(config))).toBe(ID);
    expect(bytesToHex(scheme.channelId(config))).toBe(ID);
    expect(bytesToHex(createScheme(5043).channelId(config))).not.toBe(ID);
  });

  test('of a channel change with each of its members', () => {
    const others = [
      ...Object.keys(bytes).map((name) => ({ ...config, [name]: Buffer.alloc(name === 'salt' ? 32 : 20, 1) })),
      { ...config, withdrawDelay: 900 },
    ];
    expect(new Set(others.map((other) => bytesToHex(scheme.channelId(other)))).size).toBe(7);
    for (const other of others) {
      const theirs = configJson(other) as unknown as typeof CONFIG;
      expect(bytesToHex(scheme.channelId(other))).toBe(computeChannelId(theirs, 'eip155:5042'));
    }
  });

  test('of a voucher are the contract’s: the payer’s signature recovers to the payer', () => {
    const digest = scheme.voucherDigest(id, 5000n);
    expect(bytesToHex(digest)).toBe('0x811977deba3289eb1bd47499bae42f1392ded1932ba301092c3ed94ddcc0af33');
    expect(bytesToHex(recoverAddress(digest, hexToBytes(SIGNATURE)) ?? id)).toBe(CONFIG.payer.toLowerCase());
  });

  test('of a refund and of a claim are the contract’s, of a claim of no rows too', () => {
    expect(bytesToHex(scheme.refundDigest(id, 0n, 1234n))).toBe(
      '0x248a13e40b9cdebb85dc6832b4a52637f166f606dd525f913abfb76431b5f0f5',
    );
    const row = { channelId: id, maxClaimableAmount: 5000n, totalClaimed: 4000n };
    expect(bytesToHex(scheme.claimDigest([row]))).toBe(
      '0x1b905b536da1802032491c744b8efe9bfb1d6bd364bf640aa967eb308bde23aa',
    );
    expect(bytesToHex(scheme.claimDigest([]))).toBe(
      '0x119bc2c215958f26bea4d31a8d35844b01f8c127bbf55b43eccd445d28eef37f',
    );
  });

  test('bind a deposit to its channel', () => {
    expect(bytesToHex(depositNonce(id, 1n))).toBe('0x56cd5dd9e8a4bc9cff536d3d67b0d21570cec773556ec2f97c732b9e1557a1e2');
    expect(bytesToHex(depositNonce(id, 2n))).not.toBe(bytesToHex(depositNonce(id, 1n)));
  });
});
