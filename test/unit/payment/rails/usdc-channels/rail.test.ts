import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TooMany } from '../../../../../src/errors.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { signRecoverable } from '../../../../../src/lib/secp256k1.ts';
import { channelReceipt, createChannelBook } from '../../../../../src/payment/channels/channel.ts';
import { createChannelsRail } from '../../../../../src/payment/channels/rail.ts';
import { SETTLEMENT_BYTES } from '../../../../../src/payment/channels/scheme.ts';
import type { PaidOrder, PaidProof, SignedPayment } from '../../../../../src/payment/rail.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { CHANNEL_TERMS, configJson, scheme } from '../../../../support/channels/channel-payment.ts';
import { NETWORK, operation } from '../../../../support/ledger/channel-rows.ts';
import { plainRequirement } from '../../../../support/usdc/payments.ts';

const asker = { client: 'c', hasFailed: false, signal: new AbortController().signal };
const presenter = { ...asker, identity: 'one', identifierHash: null };
const requirement = plainRequirement(bytesToHex(CHANNEL_TERMS.receiver));
const PRICE = 500n;
const refused = (name: string) => expect.objectContaining({ reason: `invalid_batch_settlement_evm_${name}` });

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let channel: UnitChannel;
/** What was sold and refunded, by the channel's id. */
let carriedOut: string[];
/** What the payer holds. */
let funds: bigint;
/** Whether the payer has had its deposits of the day. */
let isLimited: boolean;
let rail: ReturnType<typeof createChannelsRail>;
beforeEach(async () => {
  bed = await openChannelLedger();
  channel = await bed.open(10_000n);
  [carriedOut, funds, isLimited] = [[], 1_000_000n, false];
  const { store, reader, clock } = bed;
  const read = async (id: Uint8Array) => (await reader.read([id]))[0]!;
  const seen = async () => ({ used: false, balance: funds, hasCode: false, block: 7 });
  const delivery = { body: Buffer.from('sold'), receipt: {} as never, at: null };
  rail = createChannelsRail({
    store,
    clock,
    scheme,
    terms: CHANNEL_TERMS,
    network: NETWORK,
    requirement: (plain) => plain,
    ledger: { openBefore: async () => 0n },
    check: { admit: seen, simulate: async () => {} },
    evidence: { lookup: async () => ({ kind: 'unknown' }) },
    status: { unavailable: () => null },
    checkSignature: async () => null,
    sellVoucher: async ({ channelId }) => {
      carriedOut.push(`sold ${bytesToHex(channelId)}`);
      return delivery;
    },
    refund: async (payload, channelId) => {
      carriedOut.push(`${payload.kind} ${bytesToHex(channelId)}`);
      return delivery;
    },
    book: createChannelBook({
      store,
      read,
      network: NETWORK,
      withdrawDelaySeconds: 86_400,
      lastHead: () => null,
      clock,
    }),
    bounds: { minDeposit: 1000n, leastValidity: 50, mostValidity: 720 },
    balanceContracts: [],
    limits: {
      take: async () => () => {},
      check: async () => {
        if (isLimited) throw new TooMany('too_many_deposits', 'too many', 60);
      },
    },
  });
});
afterEach(() => bed.close());

/** A payload as a client sends it. */
function shown(type: string, max: bigint, amount = 5000n) {
  const now = Math.floor(bed.clock.nowMs() / 1000);
  const signature = bytesToHex(signRecoverable(scheme.voucherDigest(channel.id, max), channel.privateKey));
  const erc3009Authorization = {
    validAfter: '0',
    validBefore: String(now + 600),
    salt: `0x${'07'.padStart(64, '0')}`,
    signature,
  };
  return {
    type,
    channelConfig: configJson(channel.config),
    voucher: { channelId: channel.hex, maxClaimableAmount: String(max), signature },
    ...(type === 'deposit' && { deposit: { amount: String(amount), authorization: { erc3009Authorization } } }),
  };
}
const deposit = (max: bigint, amount = 5000n) => rail.read(shown('deposit', max, amount)) as SignedPayment;
const order = (accepted: object) => ({ accepted, requirement }) as unknown as PaidOrder;
const more = { asker, isAgain: false, price: PRICE };
const look = { used: false, balance: 1_000_000n, hasCode: false, block: 7 };

describe('a voucher', () => {
  test('is a proof of the key that signs for its channel, sold under the entry of the offer', async () => {
    const proof = rail.read(shown('voucher', PRICE)) as PaidProof;
    expect([proof.kind, bytesToHex(proof.signer)]).toEqual(['paid', bytesToHex(channel.config.payerAuthorizer)]);
    await proof.redeem(order(requirement));
    expect(carriedOut).toEqual([`sold ${channel.hex}`]);
  });

  test('for another network, for other terms, or with a wrong signature is not sold', async () => {
    const proof = rail.read(shown('voucher', PRICE)) as PaidProof;
    const other = order({ ...requirement, network: 'eip155:1' });
    await expect(proof.redeem(other)).rejects.toEqual(refused('network_mismatch'));
    await expect(proof.redeem(order({ ...requirement, amount: '1' }))).rejects.toMatchObject({
      name: 'PaymentRefused',
    });
    const wrong = shown('voucher', PRICE);
    wrong.voucher.maxClaimableAmount = '501';
    await expect((rail.read(wrong) as PaidProof).redeem(order(requirement))).rejects.toEqual(
      refused('voucher_signature'),
    );
    expect(carriedOut).toEqual([]);
  });
});

describe('a request for a refund', () => {
  test('is a command of the key that signs for its channel, and a voucher or a deposit is none', async () => {
    const command = rail.readCommand?.(shown('refund', 0n));
    expect(bytesToHex(command!.signer)).toBe(bytesToHex(channel.config.payerAuthorizer));
    await command?.run({ ...requirement }, requirement, presenter);
    expect(carriedOut).toEqual([`refund ${channel.hex}`]);
    for (const type of ['voucher', 'deposit']) expect(rail.readCommand?.(shown(type, 0n))).toBeNull();
  });

  test('is not carried out for another network or with a wrong signature', async () => {
    const command = rail.readCommand?.(shown('refund', 0n));
    const run = command?.run({ ...requirement, network: 'eip155:1' }, requirement, presenter);
    await expect(run).rejects.toEqual(refused('network_mismatch'));
    const wrong = shown('refund', 0n);
    wrong.voucher.maxClaimableAmount = '1';
    await expect(rail.readCommand?.(wrong)?.run({ ...requirement }, requirement, presenter)).rejects.toEqual(
      refused('voucher_signature'),
    );
    expect(carriedOut).toEqual([]);
  });
});

describe('a deposit', () => {
  const now = () => Math.floor(bed.clock.nowMs() / 1000);

  test('is a signed payment under the settlement contract, checked for its voucher and its own bounds', () => {
    const payment = deposit(PRICE);
    expect([payment.kind, rail.contract, rail.receipt]).toEqual(['signed', SETTLEMENT_BYTES, channelReceipt]);
    expect(() => rail.check(payment, requirement, now())).not.toThrow();
    expect(() => rail.check(deposit(PRICE, 999n), requirement, now())).toThrow(refused('deposit_below_min_deposit'));
    expect(() => rail.check(payment, requirement, now() + 551)).toThrow(refused('payload_authorization_valid_before'));
    const wrong = shown('deposit', PRICE);
    wrong.voucher.maxClaimableAmount = '501';
    expect(() => rail.check(rail.read(wrong) as SignedPayment, requirement, now())).toThrow(
      refused('voucher_signature'),
    );
  });

  test('of a payer without the money causes no row of a channel, and one of a payer with it does', async () => {
    channel = { ...channel, config: { ...channel.config, salt: Buffer.alloc(32, 5) } };
    channel = { ...channel, id: scheme.channelId(channel.config), hex: bytesToHex(scheme.channelId(channel.config)) };
    funds = 4999n;
    const options = { signed: null, isAgain: false, price: PRICE };
    await expect(rail.readPayer(deposit(PRICE), asker, options)).rejects.toEqual(refused('insufficient_balance'));
    expect(await bed.store.get(channel.id)).toBeNull();
    await bed.clock.advance(4000);
    funds = 5000n;
    expect(await rail.readPayer(deposit(PRICE), asker, options)).toMatchObject({ balance: 5000n });
    expect(await bed.store.get(channel.id)).toMatchObject({ charged: 0n });
  });

  test('that its voucher, its amount or the limits of the day rule out causes no row of a channel', async () => {
    channel = { ...channel, config: { ...channel.config, salt: Buffer.alloc(32, 6) } };
    channel = { ...channel, id: scheme.channelId(channel.config), hex: bytesToHex(scheme.channelId(channel.config)) };
    const options = { signed: null, isAgain: false, price: PRICE };
    await expect(rail.readPayer(deposit(PRICE + 1n), asker, options)).rejects.toEqual(
      refused('cumulative_amount_mismatch'),
    );
    await expect(rail.readPayer(deposit(PRICE, PRICE - 1n), asker, options)).rejects.toEqual(
      refused('cumulative_amount_mismatch'),
    );
    isLimited = true;
    await expect(rail.readPayer(deposit(PRICE), asker, options)).rejects.toMatchObject({ code: 'too_many_deposits' });
    expect(await bed.store.get(channel.id)).toBeNull();
  });

  test('with a voucher over other charges than the ledger’s is refused without a read, and forgiven', async () => {
    await bed.charge(channel, PRICE);
    await bed.clock.advance(600_000);
    bed.contract.asked.length = 0;
    funds = 0n;
    const stale = rail.readPayer(deposit(PRICE), asker, { signed: null, isAgain: false, price: PRICE });
    await expect(stale).rejects.toMatchObject({ charged: PRICE, correction: { isForgiven: true } });
    expect(bed.contract.asked).toEqual([]);
  });

  test('that a third party has sent is refused with the scheme’s reason', async () => {
    const signed = { ...look, used: true };
    await expect(rail.readPayer(deposit(PRICE), asker, { signed, isAgain: false, price: PRICE })).rejects.toEqual(
      refused('deposit_transaction_failed'),
    );
  });

  test('must cover its voucher together with the balance, and the payer must hold it', async () => {
    bed.contract.put(channel.id, { balance: 0n });
    await bed.store.note(await bed.noted(channel.id), (await bed.reader.read([channel.id]))[0]!, bed.clock.nowMs());
    expect(await rail.verify('id', deposit(PRICE, 500n), look, more)).toMatchObject({ checkedBlock: 7 });
    await expect(rail.verify('id', deposit(PRICE, 499n), look, more)).rejects.toEqual(
      refused('cumulative_amount_mismatch'),
    );
    await expect(rail.verify('id', deposit(PRICE + 1n), look, more)).rejects.toMatchObject({ charged: 0n });
    await expect(rail.verify('id', deposit(PRICE), { ...look, balance: 4999n }, more)).rejects.toEqual(
      refused('insufficient_balance'),
    );
  });

  test('that has paid must be in the channel, which is read again', async () => {
    await bed.clock.advance(2000);
    await rail.checkPaid?.(deposit(PRICE), PRICE, asker);
    bed.contract.put(channel.id, { balance: PRICE - 1n });
    await bed.clock.advance(2000);
    await expect(rail.checkPaid?.(deposit(PRICE), PRICE, asker)).rejects.toEqual(refused('cumulative_amount_mismatch'));
  });

  test('that is not reserved is busy while the channel is, and stale where its voucher has bought another call', async () => {
    const why = async () => rail.whyNotReserved?.(deposit(PRICE));
    expect(await why()).toEqual(refused('channel_busy'));
    await bed.charge(channel, PRICE);
    expect(await why()).toMatchObject({ charged: PRICE });
    await bed.store.begin(operation('r', { kind: 'refund', channelId: channel.id }), { charged: PRICE });
    expect(await rail.whyNotReserved?.(deposit(PRICE + 1n))).toEqual(refused('channel_busy'));
    expect(await rail.whyNotReserved?.({ ...deposit(PRICE), channel: undefined } as never)).toBeNull();
  });

  test('that is used tells the channel’s charges, or that they differ where no channel is known', async () => {
    await bed.charge(channel, PRICE);
    const sale = await bed.store.findSale(channel.id, PRICE);
    expect(await rail.refuseUsed?.(deposit(PRICE), sale!)).toMatchObject({ charged: PRICE });
    const unknown = {
      ...deposit(PRICE),
      channel: { channelId: Buffer.alloc(32, 1), max: 1n, signature: Buffer.alloc(65) },
    };
    expect(await rail.refuseUsed?.(unknown, sale!)).toEqual(refused('cumulative_amount_mismatch'));
  });
});
