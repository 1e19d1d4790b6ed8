import { type Abi, decodeFunctionData } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { artifacts } from '../../../../../dev/contracts.ts';
import { AppError } from '../../../../../src/errors.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { createChannelBook } from '../../../../../src/payment/channels/channel.ts';
import { createRefund } from '../../../../../src/payment/channels/refund.ts';
import type { ChannelPayload } from '../../../../../src/payment/channels/scheme.ts';
import { createTurns } from '../../../../../src/payment/channels/turns.ts';
import { BUYER, openChannelLedger, START_MS, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { scheme } from '../../../../support/channels/channel-payment.ts';
import { NETWORK } from '../../../../support/ledger/channel-rows.ts';

const abi = artifacts.BatchSettlement.abi as Abi;
const asker = {
  client: BUYER,
  hasFailed: false,
  signal: new AbortController().signal,
  identity: BUYER,
  identifierHash: null,
};
/** What the channel has bought, all of it claimed. */
const BOUGHT = 500n;
const HASH = Buffer.alloc(32, 0xda);
const PREFIX = 'invalid_batch_settlement_evm_';

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let channel: UnitChannel;
/** The ids of the operations that were begun. */
let begun: string[];
let signed: string[];
/** How the refund ends; null leaves it open. */
let end: 'done' | 'failed' | null;
let refund: ReturnType<typeof createRefund>;
let turns: ReturnType<typeof createTurns>;
let unavailable: string | null;
beforeEach(async () => {
  bed = await openChannelLedger();
  channel = await bed.open(1_000_000n + BOUGHT);
  await bed.charge(channel, BOUGHT);
  bed.contract.put(channel.id, { totalClaimed: BOUGHT });
  await bed.store.note(await bed.noted(channel.id), (await bed.reader.read([channel.id]))[0]!, START_MS);
  [begun, signed, end, unavailable] = [[], [], 'done', null];
  turns = createTurns(bed.clock);
  refund = open();
});
afterEach(() => bed.close());

function open(store: typeof bed.store = bed.store, read = async (id: Uint8Array) => (await bed.reader.read([id]))[0]!) {
  const { clock } = bed;
  const book = createChannelBook({
    store,
    read,
    network: NETWORK,
    withdrawDelaySeconds: 86_400,
    lastHead: () => null,
    clock,
  });
  const spied: typeof store = {
    ...store,
    begin: async (operation, terms) => {
      begun.push(operation.id);
      return store.begin(operation, terms);
    },
  };
  return createRefund({
    store: spied,
    book,
    turns,
    scheme,
    network: NETWORK,
    waitMs: 1000,
    clock,
    status: { cannotSend: () => unavailable },
    sign: (digest) => {
      signed.push(bytesToHex(digest));
      return Buffer.alloc(65, signed.length);
    },
    onBegun: () => void finish(),
  });
}

/** Ends the newest operation as the process that settles would. */
async function finish() {
  const id = begun.at(-1)!;
  const endedAt = bed.clock.nowMs();
  if (end === 'done') await bed.store.end(id, { state: 'done', amount: 40n, transaction: HASH, endedAt });
  // A refund that fails may have been sent.
  if (end === 'failed') await bed.store.noteBroadcast([{ id, transaction: HASH }]);
  if (end === 'failed') await bed.store.end(id, { state: 'failed', reason: 'reverted', endedAt });
}

const payloadOf = (max: bigint, amount: bigint | null = null): ChannelPayload => ({
  kind: 'refund',
  config: channel.config,
  amount,
  voucher: { channelId: channel.id, maxClaimableAmount: max, signature: Buffer.alloc(65) },
});
/** Asks for a refund, while the clock goes on. */
async function ask(payload = payloadOf(BOUGHT), by = refund, from = asker) {
  const asked = by(payload, channel.id, from);
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  asked.then(over, over);
  while (!isOver) {
    if (bed.clock.pendingSleeps().includes(100)) await bed.clock.advance(100);
    await new Promise((done) => setTimeout(done, 1));
  }
  return asked;
}
const calldataOf = async (id: string) => (await bed.store.operation(id))?.calldata;
/** The calldata of the newest operation, which its end would wipe. */
async function begunCall() {
  end = null;
  await ask(payloadOf((await bed.noted(channel.id)).charged)).catch(() => {});
  const { functionName, args } = decodeFunctionData({ abi, data: bytesToHex((await calldataOf(begun[0]!))!) });
  return { functionName, args: args as readonly unknown[] };
}

describe('a refund', () => {
  test('pays all that is left back, and answers with the transaction and the channel’s state', async () => {
    const { body, receipt } = await ask();
    expect(Buffer.from(body).toString()).toBe('{}');
    expect(receipt).toMatchObject({
      success: true,
      transaction: bytesToHex(HASH),
      amount: '40',
      payer: bytesToHex(channel.config.payer),
      extra: { channelState: { chargedCumulativeAmount: '500' } },
    });
    expect(await bed.store.operation(begun[0]!)).toMatchObject({
      network: NETWORK,
      kind: 'refund',
      state: 'done',
      createdAt: START_MS,
    });
    expect(Buffer.from((await bed.store.operation(begun[0]!))!.channelId!)).toEqual(Buffer.from(channel.id));
  });

  test('is a call with the contract’s nonce, signed by the receiver’s authorizer', async () => {
    bed.contract.put(channel.id, { refundNonce: 3n });
    await bed.clock.advance(2000);
    const { functionName, args } = await begunCall();
    expect([functionName, ...args.slice(1)]).toEqual([
      ...['refundWithSignature', 1_000_000n, 3n],
      `0x${'01'.repeat(65)}`,
    ]);
    expect(args[0]).toMatchObject({ withdrawDelay: 86_400, salt: bytesToHex(channel.config.salt) });
    expect(signed).toEqual([bytesToHex(scheme.refundDigest(channel.id, 3n, 1_000_000n))]);
  });

  test('claims what is charged and not claimed in the same transaction, and gives back the rest', async () => {
    await bed.charge(channel, 1000n);
    const { functionName, args } = await begunCall();
    expect(functionName).toBe('multicall');
    const [claim, back] = (args[0] as `0x${string}`[]).map((data) => decodeFunctionData({ abi, data }));
    expect(back).toMatchObject({
      functionName: 'refundWithSignature',
      args: [{}, 999_500n, 0n, `0x${'01'.repeat(65)}`],
    });
    const { signature } = await bed.noted(channel.id);
    expect(claim).toMatchObject({
      functionName: 'claimWithSignature',
      args: [
        [{ voucher: { maxClaimableAmount: 1000n }, signature: bytesToHex(signature!), totalClaimed: 1000n }],
        `0x${'02'.repeat(65)}`,
      ],
    });
    const entry = { channelId: channel.id, maxClaimableAmount: 1000n, totalClaimed: 1000n };
    expect(signed[1]).toBe(bytesToHex(scheme.claimDigest([entry])));
  });

  test('claims nothing where all charges are claimed', async () => {
    await bed.charge(channel, 1000n);
    bed.contract.put(channel.id, { totalClaimed: 1000n });
    await bed.clock.advance(2000);
    expect((await begunCall()).functionName).toBe('refundWithSignature');
  });

  test('of a part pays that part', async () => {
    end = null;
    await ask(payloadOf(BOUGHT, 150_000n)).catch(() => {});
    expect(await bed.store.operation(begun[0]!)).toMatchObject({ amount: 150_000n, state: 'open' });
  });

  test('that is asked for with a plain voucher is one of all that is left', async () => {
    end = null;
    const { voucher, config } = payloadOf(BOUGHT);
    await ask({ kind: 'voucher', voucher, config }).catch(() => {});
    expect(await bed.store.operation(begun[0]!)).toMatchObject({ amount: 1_000_000n });
  });
});

describe('a refund is refused', () => {
  test('with a voucher that is not the channel’s last, without a read, and the payer learns which is', async () => {
    await bed.clock.advance(2000);
    bed.contract.asked.length = 0;
    for (const max of [499n, 501n, 0n])
      await expect(ask(payloadOf(max))).rejects.toMatchObject({
        reason: `${PREFIX}cumulative_amount_mismatch`,
        charged: 500n,
      });
    expect([begun, bed.contract.asked]).toEqual([[], []]);
  });

  test('within ten minutes of the last one, also where the payer asks after another start', async () => {
    await ask();
    bed.contract.put(channel.id, { balance: 500_000n });
    await bed.clock.advance(2000);
    for (const by of [refund, open()])
      await expect(ask(payloadOf(BOUGHT), by)).rejects.toMatchObject({ status: 429, code: 'refund_too_soon' });
    expect(begun).toHaveLength(1);
  });

  test('as busy while another refund of the channel is open, which does not count for the day', async () => {
    end = null;
    await ask().catch(() => {});
    for (let again = 0; again < 4; again++)
      await expect(ask()).rejects.toMatchObject({ reason: `${PREFIX}channel_busy` });
    expect(begun).toHaveLength(5);
  });

  test('with a voucher that is not the last any more once the channel was read', async () => {
    let isCharged = false;
    const slow = open(bed.store, async (id) => {
      if (!isCharged) await bed.charge(channel, 1000n);
      isCharged = true;
      return (await bed.reader.read([id]))[0]!;
    });
    await bed.clock.advance(2000);
    await expect(ask(payloadOf(BOUGHT), slow)).rejects.toMatchObject({
      reason: `${PREFIX}cumulative_amount_mismatch`,
      charged: 1000n,
    });
    expect([isCharged, begun]).toEqual([true, []]);
  });

  test('as busy when another one has ended while the channel was read', async () => {
    end = null;
    const first = ask().catch(() => {});
    await expect.poll(() => begun.length).toBe(1);
    // The second one reads the channel, and meanwhile the first one ends.
    const held = Promise.withResolvers<void>();
    let isReading = false;
    const slow = open(bed.store, async (id) => {
      isReading = true;
      await held.promise;
      return (await bed.reader.read([id]))[0]!;
    });
    await bed.clock.advance(2000);
    const second = ask(payloadOf(BOUGHT), slow);
    await expect.poll(() => isReading).toBe(true);
    await bed.store.end(begun[0]!, { state: 'done', amount: 40n, transaction: HASH, endedAt: bed.clock.nowMs() });
    await first;
    held.resolve();
    await expect(second).rejects.toMatchObject({ reason: `${PREFIX}channel_busy` });
    expect((await bed.store.openOperations(10)).length).toBe(0);
  });

  test('as busy when the buyer leaves before its turn, and nothing is begun', async () => {
    const held = Promise.withResolvers<{ value: null; charged: bigint; isCorrected: boolean }>();
    const asking = { chargedBefore: 0n, request: 'call', charged: 0n };
    const call = turns.take(channel.hex, asking, asker.signal, () => held.promise);
    const leaving = new AbortController();
    const left = refund(payloadOf(BOUGHT), channel.id, { ...asker, signal: leaving.signal });
    leaving.abort();
    await expect(left).rejects.toMatchObject({ reason: `${PREFIX}channel_busy` });
    held.resolve({ value: null, charged: 0n, isCorrected: false });
    await call;
    expect(begun).toEqual([]);
  });

  test('while the relayer cannot send, before anything is read or stored', async () => {
    unavailable = 'no gas';
    bed.contract.asked.length = 0;
    await expect(ask()).rejects.toMatchObject({ status: 503, code: 'settlement_unavailable', charged: false });
    expect([begun, bed.contract.asked]).toEqual([[], []]);
  });

  test('where its channel has bought nothing, without a read for it', async () => {
    channel = await bed.open(1_000_000n);
    await bed.clock.advance(2000);
    bed.contract.asked.length = 0;
    await expect(ask(payloadOf(0n))).rejects.toMatchObject({ reason: `${PREFIX}refund_no_balance` });
    expect([begun, bed.contract.asked]).toEqual([[], []]);
  });

  test('without a read where a client that is not the last buyer has had its refund of this payer', async () => {
    const stranger = { ...asker, client: '10.6.6.6', identity: '10.6.6.6' };
    await ask(payloadOf(BOUGHT), refund, stranger);
    await bed.clock.advance(600_000);
    bed.contract.put(channel.id, { balance: 1_000_000n });
    bed.contract.asked.length = 0;
    await bed.store.note(await bed.noted(channel.id), (await bed.reader.read([channel.id]))[0]!, bed.clock.nowMs());
    await bed.clock.advance(2000);
    bed.contract.asked.length = 0;
    const tooMany = { status: 429, code: 'refund_too_soon' };
    await expect(ask(payloadOf(BOUGHT), refund, stranger)).rejects.toMatchObject(tooMany);
    expect([begun.length, bed.contract.asked]).toEqual([1, []]);
    await ask();
    expect(begun.length).toBe(2);
  });

  test('and is not counted where nothing is left after the read', async () => {
    bed.contract.put(channel.id, { balance: BOUGHT });
    await bed.clock.advance(2000);
    for (let time = 0; time < 4; time++)
      await expect(ask()).rejects.toMatchObject({ reason: `${PREFIX}refund_no_balance` });
    bed.contract.put(channel.id, { balance: 1_000_000n });
    await bed.clock.advance(2000);
    await ask();
    expect(begun).toHaveLength(1);
  });

  test('where its transaction failed', async () => {
    end = 'failed';
    await expect(ask()).rejects.toMatchObject({ reason: `${PREFIX}refund_transaction_failed` });
  });
});

test('a refund of a channel whose sales only a lost ledger knew is one of a third party', async () => {
  channel = await bed.open(100_000n);
  bed.contract.put(channel.id, { totalClaimed: 300n });
  await bed.store.note(await bed.noted(channel.id), (await bed.reader.read([channel.id]))[0]!, START_MS);
  expect((await ask(payloadOf(300n))).receipt).toMatchObject({ success: true });
});

test('a refund does not hold the channel’s next call up', async () => {
  await ask();
  const asking = { chargedBefore: 0n, request: 'call', charged: 0n };
  const work = async () => ({ value: 'sold', charged: 0n, isCorrected: false });
  expect(await turns.take(channel.hex, asking, asker.signal, work)).toBe('sold');
});

test('a refund that has not ended in time is answered as unknown', async () => {
  end = null;
  await expect(ask()).rejects.toMatchObject({ status: 503, code: 'settlement_unknown', charged: 'unknown' });
  expect(bed.clock.nowMs()).toBe(START_MS + 1000);
});

test('a refund that is paid is not answered from a ledger that does not know its channel', async () => {
  let reads = 0;
  const forgetful = open({
    ...bed.store,
    get: async (id) => (++reads > 1 ? null : bed.store.get(id)),
  });
  await expect(ask(payloadOf(BOUGHT), forgetful)).rejects.toMatchObject({
    status: 503,
    code: 'ledger_unavailable',
    charged: 'unknown',
  });
});

describe('a ledger that does not answer leaves a refund’s outcome unknown', () => {
  const away = () => Promise.reject(new AppError(503, 'ledger_unavailable', 'away'));
  const UNKNOWN = { status: 503, code: 'settlement_unknown', charged: 'unknown' };

  test('where it begins it, and the refund counts, because it may be sent', async () => {
    const failing = open({ ...bed.store, begin: away, operation: away });
    for (let at = 0; at < 3; at++) await expect(ask(payloadOf(BOUGHT), failing)).rejects.toMatchObject(UNKNOWN);
    await expect(ask(payloadOf(BOUGHT), failing)).rejects.toMatchObject({ status: 429 });
  });

  test('where it begins it, but the refund does not count where it was not begun', async () => {
    const failing = open({ ...bed.store, begin: away });
    for (let at = 0; at < 4; at++) await expect(ask(payloadOf(BOUGHT), failing)).rejects.toMatchObject(UNKNOWN);
  });

  test('where it waits for its end', async () => {
    await expect(ask(payloadOf(BOUGHT), open({ ...bed.store, operation: away }))).rejects.toMatchObject(UNKNOWN);
  });

  test('where it reads the channel of one that is paid', async () => {
    let reads = 0;
    const get = (id: Uint8Array) => (++reads > 1 ? away() : bed.store.get(id));
    await expect(ask(payloadOf(BOUGHT), open({ ...bed.store, get }))).rejects.toMatchObject(UNKNOWN);
  });
});

test('the operation is looked for ten times a second', async () => {
  end = null;
  let looks = 0;
  const counting = open({
    ...bed.store,
    operation: async (id) => {
      looks++;
      return bed.store.operation(id);
    },
  });
  await ask(payloadOf(BOUGHT), counting).catch(() => {});
  expect(looks).toBe(10);
});
