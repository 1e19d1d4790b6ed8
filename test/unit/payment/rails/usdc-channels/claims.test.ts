import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import { createWithdrawalAlarms } from '../../../../../src/payment/channels/claim-health.ts';
import { claimGas, createClaims } from '../../../../../src/payment/channels/claims.ts';
import { SETTLEMENT } from '../../../../../src/payment/channels/scheme.ts';
import type { Operation, OperationOutcome } from '../../../../../src/payment/settler.ts';
import { openChannelLedger } from '../../../../support/channels/channel-ledger.ts';
import { CHANNEL_TERMS, scheme } from '../../../../support/channels/channel-payment.ts';
import { NETWORK } from '../../../../support/ledger/channel-rows.ts';
import { newKey } from '../../../../support/usdc/payments.ts';

// Rounds of claims over the real ledger. The contract on a node is in test/conformance/channels/claims.test.ts.

const LIMITS = { threshold: 1000n, ageMs: 3_600_000 };
const SENDER = `0x${'77'.repeat(20)}` as const;
const HOUR_MS = 3_600_000;
const { signal } = new AbortController();

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let operations: Operation[];
/** How the relayer carries an operation out; the stand-in mines it by default. */
let operate: (operation: Operation) => Promise<OperationOutcome>;
let alarms: ReturnType<typeof createWithdrawalAlarms>;
let claims: ReturnType<typeof createClaims>;
beforeEach(async () => {
  bed = await openChannelLedger();
  operations = [];
  operate = bed.contract.operate;
  alarms = createWithdrawalAlarms(bed.clock);
  claims = open();
});
afterEach(() => bed.close());

function open() {
  const { store, reader, chain, clock, log } = bed;
  const relayer = {
    operate: (operation: Operation) => {
      operations.push(operation);
      return operate(operation);
    },
  };
  return createClaims({
    store,
    relayer,
    reader,
    chain,
    scheme,
    clock,
    log,
    bounds: LIMITS,
    network: NETWORK,
    sender: SENDER,
    alarms,
    receiver: CHANNEL_TERMS.receiver,
    token: CHANNEL_TERMS.token,
    authorizerKey: newKey().privateKey,
  });
}

/** Channels with a balance of 10,000, each charged up to one of these sums. */
async function charged(...sums: bigint[]) {
  const channels = [];
  for (const sum of sums) {
    const channel = await bed.open(10_000n);
    await bed.charge(channel, sum);
    channels.push(channel);
  }
  return channels;
}
const calls = (method: string) => bed.contract.asked.filter((one) => one.method === method);
const simulations = () => calls('eth_call').filter(({ params: [call] }) => (call as { to: string }).to === SETTLEMENT);

describe('a round of claims', () => {
  test('records what the due channels were charged and sweeps it, in one transaction from the relayer', async () => {
    const [a, b, small] = await charged(1000n, 2500n, 999n);
    expect(await claims.run(false, signal)).toEqual({ claimed: 3500n, writtenOff: 0n, setAside: 0 });
    expect([a, b, small].map((channel) => bed.contract.of(channel!.id).totalClaimed)).toEqual([1000n, 2500n, 0n]);
    expect(operations).toHaveLength(1);
    expect(operations[0]).toMatchObject({ to: hexToBytes(SETTLEMENT), gas: 330_000n, broadcast: false });
    const { transactionHash } = bed.contract.mined[0]!;
    expect(await bed.store.operation(operations[0]!.id)).toMatchObject({
      network: NETWORK,
      kind: 'claim',
      channelId: null,
      state: 'done',
      amount: 3500n,
      calldata: null,
      transaction: hexToBytes(transactionHash),
      createdAt: bed.clock.nowMs(),
      endedAt: bed.clock.nowMs(),
    });
    expect((await bed.noted(a!.id)).unclaimedSince).toBeNull();
    expect(await bed.store.totals(NETWORK)).toEqual({ charged: 4499n, claimed: 3500n, writtenOff: 0n });
    expect(bed.logged).toEqual([]);
    const reads = calls('eth_call').slice(3);
    expect(new Set(reads.map((one) => one.signal))).toEqual(new Set([signal]));
  });

  test('claims nothing twice where a provider is behind the block of the last claim', async () => {
    const [channel] = await charged(1000n);
    operate = async (operation) => {
      const outcome = await bed.contract.operate(operation);
      bed.contract.put(channel!.id, { totalClaimed: 0n });
      bed.contract.block -= 1;
      return outcome;
    };
    expect((await claims.run(false, signal)).claimed).toBe(1000n);
    expect((await claims.run(false, signal)).claimed).toBe(0n);
    bed.contract.put(channel!.id, { totalClaimed: 1000n });
    bed.contract.block += 1;
    expect((await claims.run(false, signal)).claimed).toBe(0n);
    expect([operations.length, (await bed.noted(channel!.id)).unclaimedSince]).toEqual([1, null]);
  });

  test('leaves a channel that is due by an alarm alone where two providers deny it, unless all are asked for', async () => {
    const [alarmed, due] = await charged(500n, 2000n);
    const both = [alarmed!.id, due!.id];
    for (const id of both) alarms.raise(id, bed.contract.block);
    expect((await claims.run(false, signal)).claimed).toBe(2000n);
    expect(both.map(alarms.blockOf)).toEqual([null, null]);
    alarms.raise(alarmed!.id, bed.contract.block);
    expect((await claims.run(true, signal)).claimed).toBe(500n);
  });

  test('claims only what an alarm names while no state can be read', async () => {
    const [alarmed, due] = await charged(500n, 2000n);
    alarms.raise(alarmed!.id, bed.contract.block);
    bed.contract.before = (method, [call]) => {
      if (method === 'eth_call' && (call as { to: string }).to !== SETTLEMENT) throw new Error('no provider');
    };
    expect((await claims.run(false, signal)).claimed).toBe(500n);
    expect(bed.contract.of(due!.id).totalClaimed).toBe(0n);
  });

  test('whose claim has no known end claims nothing yet and leaves it open', async () => {
    await charged(1000n);
    operate = async () => ({ kind: 'unknown' });
    expect(await claims.run(false, signal)).toEqual({ claimed: 0n, writtenOff: 0n, setAside: 0 });
    expect(await bed.store.operation(operations[0]!.id)).toMatchObject({ state: 'open' });
  });

  test('simulates the claim, then the claim with its sweep, as the relayer and with the gas of its rows', async () => {
    await charged(1000n, 2000n);
    await claims.run(false, signal);
    expect(simulations().map(({ params: [call, block], rank }) => [call, block, rank])).toMatchObject([
      [{ from: SENDER, to: SETTLEMENT, gas: '0x50910' }, '0x3e8', 'settle'],
      [{ from: SENDER, to: SETTLEMENT, gas: '0x50910', data: bytesToHex(operations[0]!.data) }, '0x3e8', 'settle'],
    ]);
    expect(simulations().map((one) => one.signal)).toEqual([signal, signal]);
    expect([claimGas(0), claimGas(1), claimGas(100)]).toEqual([250_000n, 290_000n, 4_250_000n]);
  });

  test('claims no more than what is new in a channel that was claimed before', async () => {
    const [channel] = await charged(2000n);
    await claims.run(false, signal);
    await bed.charge(channel!, 5000n);
    const begun: unknown[] = [];
    operate = async (operation) => {
      begun.push((await bed.store.operation(operation.id))?.amount);
      return bed.contract.operate(operation);
    };
    expect((await claims.run(false, signal)).claimed).toBe(3000n);
    expect(bed.contract.of(channel!.id).totalClaimed).toBe(5000n);
    expect(begun).toEqual([3000n]);
    expect(await bed.store.operation(operations[1]!.id)).toMatchObject({ amount: 3000n });
  });

  test('takes every charged channel when all are asked for, and does nothing where none is left', async () => {
    await charged(1n, 2n);
    expect((await claims.run(false, signal)).claimed).toBe(0n);
    expect((await claims.run(true, signal)).claimed).toBe(3n);
    bed.contract.asked.length = 0;
    expect(await claims.run(true, signal)).toEqual({ claimed: 0n, writtenOff: 0n, setAside: 0 });
    expect([operations.length, bed.contract.asked]).toEqual([1, []]);
  });

  test('puts at most a hundred rows into a transaction', async () => {
    await charged(...Array.from({ length: 101 }, () => 1000n));
    expect((await claims.run(false, signal)).claimed).toBe(101_000n);
    expect(operations.map(({ gas }) => gas)).toEqual([claimGas(100), claimGas(1)]);
  });

  test('begins no further transaction once it is to stop', async () => {
    await charged(...Array.from({ length: 101 }, () => 1000n));
    const stop = new AbortController();
    operate = (operation) => {
      stop.abort();
      return bed.contract.operate(operation);
    };
    expect((await claims.run(false, stop.signal)).claimed).toBe(100_000n);
    expect(operations).toHaveLength(1);
  });

  test('follows the round that was asked for before, also where that one failed', async () => {
    await charged(1000n);
    const reports = await Promise.all([claims.run(true, signal), claims.run(true, signal)]);
    expect(reports.map(({ claimed }) => claimed)).toEqual([1000n, 0n]);
    await charged(3000n);
    bed.contract.before = () => {
      throw new Error('no provider answers');
    };
    const failing = claims.run(true, signal);
    const next = claims.run(true, signal);
    await expect(failing).rejects.toThrow('no provider answers');
    bed.contract.before = () => {};
    const later = await next.catch(() => ({ claimed: 0n }));
    expect(later.claimed + (await claims.run(true, signal)).claimed).toBe(3000n);
  });

  test('lists channels page by page and misses none', async () => {
    await charged(...Array.from({ length: 3 }, () => 1000n));
    const pages: unknown[] = [];
    const { listUnclaimed } = bed.store;
    const all = await listUnclaimed(NETWORK, 10);
    const page = Array.from({ length: 500 }, (_, at) => all[at < 499 ? 0 : 1]!);
    const { store, reader, chain, clock, log } = bed;
    const paged = createClaims({
      store: {
        ...store,
        listUnclaimed: async (_, limit, after) => {
          pages.push([limit, after]);
          if (pages.length === 1) return page;
          return pages.length === 2 ? all.slice(1) : [];
        },
      },
      relayer: { operate },
      reader,
      chain,
      scheme,
      clock,
      log,
      network: NETWORK,
      sender: SENDER,
      alarms: createWithdrawalAlarms(clock),
      receiver: CHANNEL_TERMS.receiver,
      token: CHANNEL_TERMS.token,
      authorizerKey: newKey().privateKey,
      bounds: { threshold: 1_000_000n, ageMs: HOUR_MS },
    });
    await paged.run(false, signal);
    expect(pages).toEqual([
      [500, undefined],
      [500, { unclaimedSince: all[1]!.unclaimedSince, id: all[1]!.id }],
    ]);
  });
});

describe('a row that the contract refuses', () => {
  test('is found by splitting, set aside for a minute, and named to the operator; all others are claimed', async () => {
    const channels = await charged(...Array.from({ length: 9 }, () => 2000n));
    const bad = channels[4]!;
    bed.contract.refusedRows.add(bad.hex);
    expect(await claims.run(false, signal)).toEqual({ claimed: 16_000n, writtenOff: 0n, setAside: 1 });
    expect(bed.logged).toEqual([
      [
        'error',
        'ALERT: the contract refuses a claim of a payment channel; it takes no voucher until nothing is left to claim',
        { channel: bad.hex, charged: '2000', reason: 'execution reverted: InvalidSignature' },
      ],
    ]);
    expect(operations.map(({ gas }) => gas)).toEqual([claimGas(8)]);
    bed.contract.refusedRows.clear();
    await bed.clock.advance(59_999);
    for (let round = 0; round < 2; round++)
      expect(await claims.run(true, signal)).toEqual({ claimed: 0n, writtenOff: 0n, setAside: 0 });
    await bed.clock.advance(1);
    expect((await claims.run(true, signal)).claimed).toBe(2000n);
  });

  test('stops the sales on its channel until its charges are recorded, and is due whatever they are', async () => {
    const [bad] = await charged(2n);
    bed.contract.refusedRows.add(bad!.hex);
    expect((await claims.run(true, signal)).setAside).toBe(1);
    expect([operations, await bed.store.countRefused(NETWORK)]).toEqual([[], 1]);
    await expect(bed.charge(bad!, 3n)).rejects.toThrow('the voucher was not charged');
    await bed.clock.advance(60_000);
    expect((await claims.run(false, signal)).setAside).toBe(1);
    expect(bed.logged).toHaveLength(1);
    bed.contract.refusedRows.clear();
    await bed.clock.advance(60_000);
    expect(await claims.run(false, signal)).toEqual({ claimed: 2n, writtenOff: 0n, setAside: 0 });
    await bed.charge(bad!, 3n);
    expect(await bed.noted(bad!.id)).toMatchObject({ charged: 3n, claimRefusedAt: null });
  });

  test('is none where the node fails: the round ends, nothing is set aside, and the next round claims', async () => {
    await charged(2000n);
    bed.contract.before = (_, [call]) => {
      if ((call as { to?: string }).to === SETTLEMENT) throw new Error('the node is away');
    };
    await expect(claims.run(false, signal)).rejects.toThrow('the node is away');
    bed.contract.before = () => {};
    expect((await claims.run(false, signal)).claimed).toBe(2000n);
  });
});

test('a sweep that the contract refuses does not stop the claim, and the operator is told', async () => {
  await charged(2000n);
  bed.contract.isSweepRefused = true;
  expect((await claims.run(false, signal)).claimed).toBe(2000n);
  expect(bed.logged).toEqual([
    ['warn', 'claims are not paid out: the sweep is refused', { reason: 'execution reverted: Blocked' }],
  ]);
  expect(simulations()[0]).toMatchObject({ params: [{ data: bytesToHex(operations[0]!.data) }, '0x3e8'] });
});

test('what a withdrawal has taken is written off once and named to the operator, and the rest is claimed', async () => {
  const [channel, other] = await charged(4000n, 1500n);
  bed.contract.put(channel!.id, { balance: 3000n });
  expect(await claims.run(false, signal)).toEqual({ claimed: 4500n, writtenOff: 1000n, setAside: 0 });
  expect(bed.logged).toEqual([
    [
      'error',
      'charges of a payment channel are written off: its balance is gone',
      { channel: channel!.hex, amount: '1000' },
    ],
  ]);
  expect((await bed.noted(other!.id)).writtenOff).toBe(0n);
  expect(await claims.run(true, signal)).toEqual({ claimed: 0n, writtenOff: 0n, setAside: 0 });
  expect(await bed.store.totals(NETWORK)).toEqual({ charged: 5500n, claimed: 4500n, writtenOff: 1000n });
});

test('a channel whose money is gone has no row, and all of its charges are written off', async () => {
  const [channel] = await charged(4000n);
  bed.contract.put(channel!.id, { balance: 0n });
  expect(await claims.run(false, signal)).toEqual({ claimed: 0n, writtenOff: 4000n, setAside: 0 });
  expect(operations).toEqual([]);
});

test('nothing is written off where the charges rise at the same moment', async () => {
  const [channel] = await charged(4000n);
  bed.contract.put(channel!.id, { balance: 3000n });
  const { store, reader, chain, clock, log } = bed;
  const racing = createClaims({
    store: { ...store, writeOff: async () => false },
    relayer: { operate },
    reader,
    chain,
    scheme,
    clock,
    log,
    network: NETWORK,
    sender: SENDER,
    bounds: LIMITS,
    alarms: createWithdrawalAlarms(clock),
    receiver: CHANNEL_TERMS.receiver,
    token: CHANNEL_TERMS.token,
    authorizerKey: newKey().privateKey,
  });
  expect((await racing.run(false, signal)).writtenOff).toBe(0n);
  expect(bed.logged).toEqual([]);
});
