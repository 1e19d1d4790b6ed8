import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { systemClock as clock } from '../../../src/lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { createWithdrawalAlarms } from '../../../src/payment/channels/claim-health.ts';
import { createClaims } from '../../../src/payment/channels/claims.ts';
import { SETTLEMENT } from '../../../src/payment/channels/scheme.ts';
import { createChannelStage } from '../../support/channels/channel-contract.ts';
import { scheme } from '../../support/channels/channel-payment.ts';
import { DEPOSIT, NETWORK, openClaimsBed } from '../../support/channels/claims-bed.ts';

// Claims of payment channels: the real ledger, the real relayer, the contract on a real node.

const LIMITS = { threshold: 1000n, ageMs: 3_600_000 };
const { signal } = new AbortController();
let network: EmbeddedNetwork;
let stage: ReturnType<typeof createChannelStage>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  stage = createChannelStage(network);
});
afterAll(() => network?.stop());

let bed: Awaited<ReturnType<typeof openClaimsBed>>;
let alerts: string[];
let claims: ReturnType<typeof createClaims>;
beforeEach(async () => {
  bed = await openClaimsBed(network, stage);
  alerts = [];
  claims = open();
});
afterEach(() => bed.close());

function open(relayer: Pick<typeof bed.relayer, 'operate'> = bed.relayer, { store, reader } = bed) {
  const { chain, channels, wallet } = bed;
  return createClaims({
    store,
    relayer,
    reader,
    chain,
    scheme,
    clock,
    bounds: LIMITS,
    alarms: createWithdrawalAlarms(clock),
    receiver: channels.receiver,
    token: channels.token,
    authorizerKey: channels.authorizer.privateKey,
    network: NETWORK,
    sender: wallet.address,
    log: { warn: (_, message) => alerts.push(message), error: (_, message) => alerts.push(message) },
  });
}

describe('a round of claims', () => {
  test('records what a hundred channels were charged and pays it out, in one transaction and to the unit', async () => {
    const opened = await bed.funded(100);
    for (const [at, channel] of opened.entries()) await bed.charge(channel, 5000n + BigInt(at));
    const report = await claims.run(false, signal);
    const sum = 500_000n + 4950n;
    expect(report).toEqual({ claimed: sum, writtenOff: 0n, setAside: 0 });
    expect([bed.mined.length, await bed.earned()]).toEqual([1, sum]);
    process.stderr.write(`gas of a claim of 100 channels with its sweep: ${bed.mined[0]?.gasUsed}\n`);
    expect(await bed.reconciled()).toEqual({ charged: sum, claimed: sum, writtenOff: 0n, claimable: 0n });
    expect([await bed.store.openOperations(10), alerts]).toEqual([[], []]);
  });

  test('takes the channels that are worth it and leaves the others, which a command claims too', async () => {
    const [small, large] = await bed.funded(2);
    if (!small || !large) throw new Error('no channels');
    await bed.charge(small, 999n);
    await bed.charge(large, 1000n);
    expect((await claims.run(false, signal)).claimed).toBe(1000n);
    expect(await bed.reconciled()).toMatchObject({ claimed: 1000n, claimable: 999n });
    expect((await claims.run(true, signal)).claimed).toBe(999n);
    expect(await bed.reconciled()).toMatchObject({ claimed: 1999n, claimable: 0n });
    expect(await claims.run(true, signal)).toEqual({ claimed: 0n, writtenOff: 0n, setAside: 0 });
  });

  test('takes a channel whose payer may withdraw what was charged, however little that is', async () => {
    const [channel] = await bed.funded(1);
    if (!channel) throw new Error('no channel');
    await bed.charge(channel, 1n);
    await bed.withdraw(channel, DEPOSIT);
    await bed.note(channel);
    expect((await claims.run(false, signal)).claimed).toBe(1n);
  });

  test('leaves a channel for later whose payer wants only money back that no charge needs', async () => {
    const [channel] = await bed.funded(1);
    if (!channel) throw new Error('no channel');
    await bed.charge(channel, 1n);
    await bed.withdraw(channel, DEPOSIT - 1n);
    await bed.note(channel);
    expect((await claims.run(false, signal)).claimed).toBe(0n);
    expect(await bed.reconciled()).toMatchObject({ claimable: 1n });
  });

  test('claims the newest sum of a channel that was claimed before, and never more', async () => {
    const [channel] = await bed.funded(1);
    if (!channel) throw new Error('no channel');
    for (const max of [2000n, 3500n, 9000n]) {
      await bed.charge(channel, max);
      await claims.run(false, signal);
      expect(await bed.recorded(channel)).toBe(max);
    }
    expect(await bed.earned()).toBe(9000n);
  });

  test('sets a row that the contract refuses aside, and claims all others', async () => {
    const opened = await bed.funded(9);
    for (const [at, channel] of opened.entries())
      await bed.charge(channel, 2000n, at === 4 ? Buffer.alloc(65, 1) : channel.signVoucher(2000n));
    expect(await claims.run(false, signal)).toEqual({ claimed: 16_000n, writtenOff: 0n, setAside: 1 });
    expect(alerts).toEqual([expect.stringContaining('ALERT: the contract refuses a claim of a payment channel')]);
    expect(await claims.run(false, signal)).toEqual({ claimed: 0n, writtenOff: 0n, setAside: 0 });
    const poisoned = opened[4];
    if (!poisoned) throw new Error('no channel');
    await expect(bed.charge(poisoned, 3000n)).rejects.toThrow('not to be null');
    expect(await bed.noted(poisoned)).toMatchObject({ charged: 2000n, claimRefusedAt: expect.any(Number) });
    expect(await bed.reconciled()).toMatchObject({ claimed: 16_000n, claimable: 2000n });
  });

  test('writes off what a completed withdrawal has taken, claims the rest, and reconciles to the unit', async () => {
    const [channel] = await bed.funded(1);
    if (!channel) throw new Error('no channel');
    await bed.charge(channel, 400_000n);
    await bed.withdraw(channel, 700_000n);
    await network.rpc('evm_increaseTime', [901]);
    await network.rpc('evm_mine', []);
    await bed.finalizeWithdraw(channel);
    expect(await claims.run(false, signal)).toEqual({ claimed: 300_000n, writtenOff: 100_000n, setAside: 0 });
    expect(await bed.reconciled()).toEqual({
      charged: 400_000n,
      claimed: 300_000n,
      writtenOff: 100_000n,
      claimable: 0n,
    });
    expect(alerts).toEqual(['charges of a payment channel are written off: its balance is gone']);
  });

  test('of two that are asked for at once, the second waits and claims nothing twice', async () => {
    const [channel] = await bed.funded(1);
    if (!channel) throw new Error('no channel');
    await bed.charge(channel, 2000n);
    const reports = await Promise.all([claims.run(true, signal), claims.run(true, signal)]);
    expect(reports.map(({ claimed }) => claimed)).toEqual([2000n, 0n]);
    expect([bed.mined.length, await bed.earned()]).toEqual([1, 2000n]);
  });
});

describe('over a provider that stays behind after a claim', () => {
  /** Claims of one channel, whose states after the first look stay as they were. Also the amounts of the claims that ended as done. */
  async function behind() {
    const [channel] = await bed.funded(1);
    if (!channel) throw new Error('no channel');
    await bed.charge(channel, 2000n);
    const old = await bed.reader.read([channel.id]);
    const counted: bigint[] = [];
    const end: typeof bed.store.end = (id, how) => {
      if (how.state === 'done') counted.push(how.amount);
      return bed.store.end(id, how);
    };
    /** A process whose first reads show the channel as it was. */
    const reopen = (lags = Number.POSITIVE_INFINITY) => {
      let reads = 0;
      const read: typeof bed.reader.read = async (ids) => (reads++ < lags ? old : bed.reader.read(ids));
      return open(bed.relayer, { ...bed, store: { ...bed.store, end }, reader: { ...bed.reader, read } });
    };
    return { counted, reopen };
  }

  test('a claim is sent once', async () => {
    const { counted, reopen } = await behind();
    const { run } = reopen();
    expect((await run(true, signal)).claimed).toBe(2000n);
    expect((await run(true, signal)).claimed).toBe(0n);
    expect([counted, bed.mined.length, await bed.earned()]).toEqual([[2000n], 1, 2000n]);
  });

  test('a claim that a restarted process repeats is counted once', async () => {
    const { counted, reopen } = await behind();
    expect((await reopen().run(true, signal)).claimed).toBe(2000n);
    expect((await reopen(1).run(true, signal)).claimed).toBe(0n);
    expect([counted, await bed.earned(), await bed.store.openOperations(9)]).toEqual([[2000n], 2000n, []]);
  });
});

describe('after a crash, an open claim', () => {
  /** A claim that is begun and whose process dies at this step. */
  async function crashed(at: 'before the note' | 'after the transaction') {
    const [channel] = await bed.funded(1);
    if (!channel) throw new Error('no channel');
    await bed.charge(channel, 2000n);
    await open({
      operate: async (operation) => {
        if (at === 'before the note') return { kind: 'unknown' };
        const hash = await stage.sender.sendTransaction({ to: SETTLEMENT, data: bytesToHex(operation.data) });
        await operation.note(hexToBytes(hash));
        await stage.chain.waitForTransactionReceipt({ hash });
        return { kind: 'unknown' };
      },
    }).run(true, signal);
    const [row] = await bed.store.openOperations(10);
    if (!row) throw new Error('no open claim');
    return { channel, row };
  }

  test('that was never sent is sent, once', async () => {
    const { channel, row } = await crashed('before the note');
    await claims.run(true, signal);
    expect([await bed.recorded(channel), await bed.earned(), bed.mined.length]).toEqual([2000n, 2000n, 1]);
    expect(await bed.store.operation(row.id)).toMatchObject({ state: 'done', amount: 2000n, calldata: null });
  });

  test('that the chain shows is ended by its event, and nothing is sent', async () => {
    const { row } = await crashed('after the transaction');
    await claims.run(true, signal);
    expect(await bed.store.operation(row.id)).toMatchObject({
      state: 'done',
      amount: 2000n,
      transaction: row.transaction,
    });
    expect([bed.mined, await bed.reconciled()]).toMatchObject([[], { claimed: 2000n, claimable: 0n }]);
  });
});
