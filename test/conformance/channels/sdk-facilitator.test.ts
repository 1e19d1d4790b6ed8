import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/facilitator';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { createSdkSigner } from '../../../scripts/bench/sdk-facilitator.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import { channelRequirement } from '../../../src/payment/channels/rail.ts';
import { eventsOf } from '../../support/channels/chain-view.ts';
import { type ChannelBuyer, channelBuyer } from '../../support/channels/channel-buyer.ts';
import { configJson, scheme } from '../../support/channels/channel-payment.ts';
import { channelOnChain } from '../../support/channels/channel-reads.ts';
import { balanceOf, newBuyer } from '../../support/usdc/buyer.ts';
import { plainRequirement } from '../../support/usdc/payments.ts';

// The SDK's own facilitator, unmodified, over the contracts of the embedded network: the same calls, events and errors as the scheme's own contracts.

const DEPOSIT = 1_000_000n;
const PREFIX = 'invalid_batch_settlement_evm_';
/** Selectors of the scheme's errors. The SDK's interface of the contract does not name them. */
const ERRORS = {
  InvalidSignature: '0x8baa579f',
  ClaimExceedsCeiling: '0xf1789775',
  ClaimExceedsBalance: '0x7d8242b6',
  EmptyBatch: '0xc2e5347d',
  InvalidRefundNonce: '0x164f1afe',
};
const authorizer = createAccount().privateKey;
let network: EmbeddedNetwork;
let facilitator: BatchSettlementEvmScheme;
let requirements: PaymentRequirements;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  const sender = createAccount();
  await network.fundNative(sender.address, 10n ** 20n);
  const { chainId, rpcUrl, multicall3 } = network;
  const signer = createSdkSigner({ chainId, rpcUrl, multicall3, key: sender.privateKey, pollMs: 30 });
  facilitator = new BatchSettlementEvmScheme(signer, privateKeyToAccount(authorizer));
  const limits = { claimFrom: DEPOSIT, claimAfterSeconds: 60, depositsADay: { payer: 0, client: 0 } };
  const entry = channelRequirement({
    authorizerKey: authorizer,
    withdrawDelaySeconds: 900,
    minDeposit: DEPOSIT,
    ...limits,
  });
  requirements = entry(plainRequirement(network.seller) as PaymentRequirements);
});
afterAll(() => network?.stop());

const envelope = (payload: object) => ({ x402Version: 2, accepted: requirements, payload }) as PaymentPayload;
const settle = (payload: object) => facilitator.settle(envelope(payload), requirements);
const payloadIn = (header: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(header, 'base64').toString('utf8')).payload;

/** A payer whose channel holds the deposit, which the facilitator has sent. */
async function depositor() {
  const { privateKey, address } = await newBuyer(network, DEPOSIT);
  const buyer = channelBuyer(privateKey, requirements);
  const id = bytesToHex(buyer.id);
  const payload = payloadIn(buyer.deposit(DEPOSIT, 1000n));
  expect(await facilitator.verify(envelope(payload), requirements)).toMatchObject({ isValid: true });
  expect(await settle(payload)).toMatchObject({ success: true, amount: String(DEPOSIT) });
  return { buyer, id, address };
}
/** The row of a claim, with the voucher that the buyer signs. */
function rowOf(buyer: ChannelBuyer, max: bigint, total = max) {
  const { signature } = payloadIn(buyer.voucher(max)).voucher as { signature: string };
  const voucher = { channel: configJson(buyer.config), maxClaimableAmount: String(max) };
  return { voucher, signature, totalClaimed: String(total) };
}
const claimedOf = async ({ id }: ChannelBuyer) => (await channelOnChain(network, id)).claimed;

test('the SDK’s facilitator settles deposits, a claim that we signed, and the sweep, and reads the amounts from the events', async () => {
  const sweep = { type: 'settle', receiver: network.seller, token: network.usdc };
  // What another test has claimed is swept first.
  await settle(sweep);
  const before = await balanceOf(network, network.seller);
  const [one, other] = [await depositor(), await depositor()];
  expect(await eventsOf(network, 'Deposited', one.id)).toEqual([DEPOSIT]);
  expect(await balanceOf(network, one.address)).toBe(0n);
  expect(await facilitator.verify(envelope(payloadIn(one.buyer.voucher(5000n))), requirements)).toMatchObject({
    isValid: true,
    extra: { channelId: one.id, balance: String(DEPOSIT), totalClaimed: '0' },
  });
  const claims = [rowOf(one.buyer, 5000n, 4000n), rowOf(other.buyer, 3000n)];
  const entries = [
    { channelId: one.buyer.id, maxClaimableAmount: 5000n, totalClaimed: 4000n },
    { channelId: other.buyer.id, maxClaimableAmount: 3000n, totalClaimed: 3000n },
  ];
  const signature = bytesToHex(signRecoverable(scheme.claimDigest(entries), hexToBytes(authorizer)));
  expect(await settle({ type: 'claim', claims, claimAuthorizerSignature: signature })).toMatchObject({ success: true });
  expect([await claimedOf(one.buyer), await claimedOf(other.buyer)]).toEqual([4000n, 3000n]);
  expect(await settle(sweep)).toMatchObject({ success: true, amount: '7000' });
  expect(await balanceOf(network, network.seller)).toBe(before + 7000n);
  expect(await settle(sweep)).toMatchObject({ success: false, errorReason: `${PREFIX}nothing_to_settle` });
});

test('the SDK’s facilitator claims and refunds in one call with its own signatures, and finds nothing to refund afterwards', async () => {
  const { buyer, id, address } = await depositor();
  const { channelConfig, voucher } = payloadIn(buyer.voucher(2500n));
  const refund = { type: 'refund', channelConfig, voucher, refundNonce: '0', claims: [rowOf(buyer, 2500n)] };
  const rest = DEPOSIT - 2500n;
  expect(await settle({ ...refund, amount: String(rest) })).toMatchObject({ success: true, amount: String(rest) });
  expect([await balanceOf(network, address), await claimedOf(buyer)]).toEqual([rest, 2500n]);
  expect(await eventsOf(network, 'Refunded', id)).toEqual([rest]);
  expect(await settle({ ...refund, amount: '1', refundNonce: '1' })).toMatchObject({
    success: false,
    errorReason: `${PREFIX}refund_no_balance`,
  });
});

test('the SDK’s facilitator is refused by our contracts with the errors of the scheme’s own contracts', async () => {
  const { buyer } = await depositor();
  const stranger = channelBuyer(hexToBytes(createAccount().privateKey), requirements);
  const forged = { ...rowOf(buyer, 5000n), signature: rowOf(stranger, 5000n).signature };
  const refused = [
    [{ type: 'claim', claims: [forged] }, ERRORS.InvalidSignature],
    [{ type: 'claim', claims: [rowOf(buyer, 5000n, 5001n)] }, ERRORS.ClaimExceedsCeiling],
    [{ type: 'claim', claims: [rowOf(buyer, DEPOSIT + 1n)] }, ERRORS.ClaimExceedsBalance],
    [{ type: 'claim', claims: [] }, ERRORS.EmptyBatch],
  ] as const;
  for (const [payload, error] of refused) {
    const answer = await settle(payload);
    expect(answer).toMatchObject({ success: false, errorReason: `${PREFIX}claim_simulation_failed` });
    expect(answer.errorMessage).toContain(error);
  }
  const { channelConfig, voucher } = payloadIn(buyer.voucher(0n));
  const early = await settle({ type: 'refund', channelConfig, voucher, amount: '5', refundNonce: '7', claims: [] });
  expect(early).toMatchObject({ success: false, errorReason: `${PREFIX}refund_simulation_failed` });
  expect(early.errorMessage).toContain(ERRORS.InvalidRefundNonce);
});
