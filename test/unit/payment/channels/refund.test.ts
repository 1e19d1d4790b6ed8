import { type Abi, decodeFunctionData, type Hex } from 'viem';
import { describe, expect, test } from 'vitest';
import { artifacts } from '../../../../dev/contracts.ts';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import { signRecoverable } from '../../../../src/lib/secp256k1.ts';
import { START_MS } from '../../../support/channels/channel-ledger.ts';
import { AUTHORIZER_KEY, scheme } from '../../../support/channels/channel-payment.ts';
import { AWAY, openChannelSale, SETTLE_WAIT_MS } from '../../../support/channels/channel-sale.ts';
import { createPause } from '../../../support/channels/ledger-steps.ts';
import { NETWORK } from '../../../support/ledger/channel-rows.ts';

const abi = artifacts.BatchSettlement.abi as Abi;
/** What the channel has bought, all of it claimed. */
const BOUGHT = 500n;
const UNKNOWN = '503 settlement_unknown, charged: unknown';
const signedBy = (digest: Uint8Array): Hex => bytesToHex(signRecoverable(digest, AUTHORIZER_KEY));

async function openRefundable() {
  const world = await openChannelSale();
  const { bed, refund, ask, see, script } = world;
  const of = await bed.open(1_000_000n + BOUGHT);
  await bed.charge(of, BOUGHT);
  await see({ totalClaimed: BOUGHT }, of);
  return {
    ...world,
    of,
    askBack: (max = BOUGHT, more: { amount?: bigint } = {}) => ask({}, refund(max, { of, ...more })),
    /** The call of a refund of all that is left, which the end of the refund would wipe. */
    async begunCall(): Promise<{ functionName: string; args: readonly unknown[] }> {
      script.refund = 'open';
      expect(await ask({}, refund((await bed.noted(of.id)).charged, { of }))).toBe(UNKNOWN);
      const [begun] = await bed.store.openOperations(10);
      const { functionName, args } = decodeFunctionData({ abi, data: bytesToHex(begun!.calldata!) });
      return { functionName, args: args as readonly unknown[] };
    },
  };
}

describe('a refund', () => {
  test('pays all that is left back, and answers with the transaction and the channel’s state', async () => {
    const { sell, refund, of, bed } = await openRefundable();
    const { body, receipt, at } = await sell({}, refund(BOUGHT, { of }));
    expect(Buffer.from(body).toString()).toBe('{}');
    const done = (await bed.store.lastRefund(of.id))!;
    expect(done).toMatchObject({ network: NETWORK, kind: 'refund', state: 'done', createdAt: START_MS, endedAt: at });
    expect(receipt).toMatchObject({
      success: true,
      transaction: bytesToHex(done.transaction!),
      amount: '1000000',
      payer: bytesToHex(of.config.payer),
      network: NETWORK,
      extra: { channelState: { balance: '500', chargedCumulativeAmount: '500' } },
    });
    expect(bed.contract.of(of.id)).toMatchObject({ balance: BOUGHT, refundNonce: 1n });
  });

  test('is a call with the contract’s nonce, signed by the receiver’s authorizer', async () => {
    const { bed, of, begunCall, clock } = await openRefundable();
    bed.contract.put(of.id, { refundNonce: 3n });
    await clock.advance(2000);
    const { functionName, args } = await begunCall();
    const signature = signedBy(scheme.refundDigest(of.id, 3n, 1_000_000n));
    expect([functionName, ...args.slice(1)]).toEqual(['refundWithSignature', 1_000_000n, 3n, signature]);
    expect(args[0]).toMatchObject({ withdrawDelay: 86_400, salt: bytesToHex(of.config.salt) });
  });

  test('claims what is charged and not claimed in the same transaction, and gives back the rest', async () => {
    const { bed, of, begunCall } = await openRefundable();
    await bed.charge(of, 1000n);
    const { functionName, args } = await begunCall();
    expect(functionName).toBe('multicall');
    const [claim, back] = (args[0] as Hex[]).map((data) => decodeFunctionData({ abi, data }));
    expect(back).toMatchObject({ functionName: 'refundWithSignature', args: [{}, 999_500n, 0n, expect.anything()] });
    const { signature } = await bed.noted(of.id);
    const entry = { channelId: of.id, maxClaimableAmount: 1000n, totalClaimed: 1000n };
    const row = { voucher: { maxClaimableAmount: 1000n }, signature: bytesToHex(signature!), totalClaimed: 1000n };
    expect(claim).toMatchObject({
      functionName: 'claimWithSignature',
      args: [[row], signedBy(scheme.claimDigest([entry]))],
    });
  });

  test('is begun before the requests are answered whose voucher the last call has made stale', async () => {
    const { ask, voucher, refund, of, waiting, count } = await openRefundable();
    const held = createPause();
    const sold = ask({ run: held.pause }, voucher(2n * BOUGHT, { of }));
    await held.reached;
    const stale = ask({ tag: 'stale' }, voucher(2n * BOUGHT, { of })).then((end) => [end, count('begin the refund')]);
    await expect.poll(waiting).toBe(1);
    const refunded = ask({}, refund(2n * BOUGHT, { of }));
    await expect.poll(waiting).toBe(2);
    held.go();
    expect(await sold).toBe('answer 1');
    expect(await stale).toEqual(['402 cumulative_amount_mismatch, charges: 1000', 1]);
    expect(await refunded).toBe('refunded');
  });

  test('waits in the ledger for the process that settles, where its own does not', async () => {
    const { another, refund, bed, of } = await openRefundable();
    expect(await (await another(false)).ask({}, refund(BOUGHT, { of }))).toBe(UNKNOWN);
    expect(await bed.store.openOperations(10)).toMatchObject([{ kind: 'refund', amount: 1_000_000n, state: 'open' }]);
  });

  test('claims nothing where all charges are claimed', async () => {
    const { bed, of, begunCall, clock } = await openRefundable();
    await bed.charge(of, 1000n);
    bed.contract.put(of.id, { totalClaimed: 1000n });
    await clock.advance(2000);
    expect((await begunCall()).functionName).toBe('refundWithSignature');
  });

  test('of a part pays that part, and does not hold the channel’s next call up', async () => {
    const { askBack, ask, voucher, bed, of } = await openRefundable();
    expect(await askBack(BOUGHT, { amount: 150_000n })).toBe('refunded');
    expect(await bed.store.lastRefund(of.id)).toMatchObject({ amount: 150_000n });
    expect(await ask({ tag: 'next' }, voucher(2n * BOUGHT, { of }))).toBe('answer 1');
  });

  test('needs no endpoint: neither one that is on, nor right parameters, nor room for a reply', async () => {
    const { ask, bed, refund, see, script, runs } = await openChannelSale({ storeBytes: 0 });
    const of = await bed.open(1_000_000n + BOUGHT);
    await bed.charge(of, BOUGHT);
    await see({ totalClaimed: BOUGHT }, of);
    [script.unavailable, script.stopsSales] = ['the budget of the day is used up', 'no two providers agree'];
    expect(await ask({ tag: 'x'.repeat(41), isOff: true }, refund(BOUGHT, { of }))).toBe('refunded');
    expect(runs()).toBe(0);
  });

  test('of a channel whose sales only a lost ledger knew is one of a third party', async () => {
    const { ask, refund, bed, see } = await openChannelSale();
    const of = await bed.open(100_000n);
    await see({ totalClaimed: 300n }, of);
    expect(await ask({}, refund(300n, { of }))).toBe('refunded');
  });
});

describe('a refund is answered as unknown', () => {
  test('where it has not ended in time; until then it is looked at ten times a second', async () => {
    const { askBack, script, count, clock } = await openRefundable();
    script.refund = 'open';
    expect(await askBack()).toBe(UNKNOWN);
    expect([count('look at the refund'), clock.nowMs() - START_MS]).toEqual([10, SETTLE_WAIT_MS]);
  });

  test('where the ledger does not say whether it has begun; it counts, because it may be sent', async () => {
    const { askBack, on } = await openRefundable();
    on('begin the refund', AWAY);
    on('look at the refund', AWAY);
    for (let time = 0; time < 3; time++) expect(await askBack()).toBe(UNKNOWN);
    expect(await askBack()).toBe('429 refund_too_soon, charged: false');
  });

  test('where the ledger did not answer as it began, and it counts where it has begun', async () => {
    const { askBack, on, bed, clock } = await openRefundable();
    on('begin the refund', async (go) => {
      await go();
      return AWAY();
    });
    for (let time = 0; time < 3; time++) {
      expect(await askBack()).toBe(UNKNOWN);
      const [begun] = await bed.store.openOperations(10);
      await bed.store.end(begun!.id, { state: 'failed', reason: 'reverted', endedAt: clock.nowMs() });
      await clock.advance(600_001);
    }
    expect(await askBack()).toBe('429 refund_too_soon, charged: false');
  });

  test('where the ledger did not answer as it began; it does not count where it has not begun', async () => {
    const { askBack, on } = await openRefundable();
    on('begin the refund', AWAY);
    for (let time = 0; time < 4; time++) expect(await askBack()).toBe(UNKNOWN);
  });

  test('where the ledger does not tell its end', async () => {
    const { askBack, on } = await openRefundable();
    on('look at the refund', AWAY);
    expect(await askBack()).toBe(UNKNOWN);
  });

  test.each([
    ['cannot be read', AWAY, UNKNOWN],
    ['is not known to the ledger', async () => null, '503 ledger_unavailable, charged: unknown'],
  ])('where it is paid and its channel %s', async (_, instead, end) => {
    const { askBack, on, bed, of } = await openRefundable();
    on('look at the refund', async (go) => {
      const operation = (await go()) as { state: string };
      if (operation.state === 'done') on('read the channel', instead);
      return operation;
    });
    expect(await askBack()).toBe(end);
    expect(bed.contract.of(of.id).balance).toBe(BOUGHT);
  });
});
