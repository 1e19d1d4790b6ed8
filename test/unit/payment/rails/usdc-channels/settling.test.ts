import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChainClient } from '../../../../../src/chain/rpc/client.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { refundCalldata } from '../../../../../src/payment/channels/calldata.ts';
import { openChannelsSettler } from '../../../../../src/payment/channels/settler.ts';
import type { RelayerMetrics } from '../../../../../src/payment/relayer/gas.ts';
import type { RailProbe, Relayer } from '../../../../../src/payment/settler.ts';
import type { Payment } from '../../../../../src/store/ports/payments.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { CHANNEL_TERMS, scheme } from '../../../../support/channels/channel-payment.ts';
import { NETWORK, operation } from '../../../../support/ledger/channel-rows.ts';
import { reservation } from '../../../../support/ledger/ledger-rows.ts';
import { newKey } from '../../../../support/usdc/payments.ts';

// What the process that settles does for channels, over the real ledger and a stand-in of the contract.

const { signal } = new AbortController();
const WAIT_MS = 5000;

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let channel: UnitChannel;
let probed: RailProbe;
let rails: string[];
let tokens: unknown[];
/** What the relayer says of itself; null where all is well. */
let says: { unavailable: string; cannotSend: string } | null;
let operate: Relayer['operate'];
let settling: ReturnType<typeof open>;
beforeEach(async () => {
  bed = await openChannelLedger();
  channel = await bed.open(10_000n);
  [probed, rails, tokens] = [{ ok: true }, [], []];
  says = { unavailable: 'no gas', cannotSend: 'no chain' };
  operate = bed.contract.operate;
  settling = open();
});
afterEach(async () => {
  bed.contract.before = () => {};
  await settling.settler.stop();
  await bed.close();
});

/** `fencingToken`: the lease's of an instance of several; null in a process that settles alone. */
function open(fencingToken: number | null = 7, metrics?: RelayerMetrics) {
  const { clock, log, chain } = bed;
  const relayer: Relayer = {
    settle: () => [],
    unavailable: () => says?.unavailable ?? null,
    cannotSend: () => says?.cannotSend ?? null,
    refuses: () => null,
    refused: () => [],
    refusesCode: () => null,
    operate: (given) => operate(given),
  };
  const store: typeof bed.store = {
    ...bed.store,
    noteBroadcast: (entries, token) => {
      tokens.push(token);
      return bed.store.noteBroadcast(entries);
    },
  };
  const channels = {
    authorizerKey: bytesToHex(newKey().privateKey),
    withdrawDelaySeconds: 1200,
    minDeposit: 1n,
    claimFrom: 1000n,
    claimAfterSeconds: 60,
    depositsADay: { payer: 0, client: 0 },
  };
  const evidence = { lookup: async () => ({ kind: 'unknown' }) as const, paidIn: async () => null };
  return openChannelsSettler(
    {
      setup: { scheme, terms: CHANNEL_TERMS, channels, network: NETWORK },
      store,
      chain: chain as unknown as ChainClient,
      evidence,
      sender: `0x${'77'.repeat(20)}`,
      probe: async () => probed,
      metrics,
      clock,
      log,
    },
    {
      noteBroadcast: async () => new Set(),
      ...(fencingToken !== null && { fencingToken }),
      relayer: (rail) => {
        rails.push(rail);
        return relayer;
      },
    },
  );
}
const claimed = () => bed.contract.of(channel.id).totalClaimed;
const refresh = () => settling.settler.refresh?.();

test('channels settle through the relayer, by their own name, and take what it says about itself', () => {
  expect(rails).toEqual(['usdc-channels']);
  expect([settling.settler.unavailable(), settling.settler.cannotSend?.()]).toEqual(['no gas', 'no chain']);
  expect([settling.settler.ownOnly, settling.settler.settle([])]).toEqual([false, []]);
});

describe('a round of maintenance', () => {
  test('claims what is due, by the operator’s amount and age, with this lease’s token', async () => {
    await bed.charge(channel, 999n);
    // What is claimed of another channel shows that a round was made.
    const dear = await bed.open(10_000n);
    const roundOf = async (max: bigint) => {
      await bed.charge(dear, max);
      await expect
        .poll(async () => {
          await refresh();
          return bed.contract.of(dear.id).totalClaimed;
        })
        .toBe(max);
    };
    await roundOf(1000n);
    expect(claimed()).toBe(0n);
    await bed.clock.advance(59_999);
    await roundOf(2000n);
    expect(claimed()).toBe(0n);
    await bed.clock.advance(1);
    await expect
      .poll(async () => {
        await refresh();
        return [claimed(), tokens];
      })
      .toEqual([999n, [7, 7, 7]]);
    await bed.charge(channel, 1999n);
    await expect
      .poll(async () => {
        await refresh();
        return claimed();
      })
      .toBe(1999n);
  });

  test('claims in the same round for a withdrawal that the watch has seen', async () => {
    await refresh();
    await bed.charge(channel, 5n);
    bed.contract.put(channel.id, { withdrawAmount: 10_000n });
    bed.contract.mineLogs([bed.contract.event('WithdrawInitiated', [channel.hex], [10_000n, 1_800_001_200])]);
    await refresh();
    await expect.poll(claimed).toBe(5n);
  });

  test('claims although the watch fails, and then reports the failure', async () => {
    await bed.charge(channel, 1000n);
    bed.contract.before = (method) => {
      if (method === 'eth_getLogs') throw new Error('no logs');
    };
    await expect(refresh()).rejects.toThrow('no logs');
    await expect.poll(claimed).toBe(1000n);
  });

  test('deletes the rows of channels that have bought nothing and were not read for an hour', async () => {
    const bought = await bed.open(10_000n);
    await bed.charge(bought, 1n);
    await bed.clock.advance(3_600_001);
    await refresh();
    expect([await bed.store.get(channel.id), await bed.store.get(bought.id)]).toMatchObject([null, { charged: 1n }]);
  });

  test('reads nothing where the contracts are not found', async () => {
    await bed.charge(channel, 1000n);
    bed.contract.asked.length = 0;
    probed = { ok: false, detail: 'no contract' };
    await refresh();
    expect([bed.contract.asked, claimed()]).toEqual([[], 0n]);
    await expect(settling.claimAll(signal)).rejects.toThrow('payment channels cannot be claimed: no contract');
  });
});

test('channels are probed by their contracts, and are not offered while claims fail and too much waits for one', async () => {
  const large = await bed.open(100_000n);
  await bed.charge(large, 10_000n);
  await bed.clock.advance(120_001);
  says = null;
  operate = async () => ({ kind: 'failed', reason: 'reverted' });
  const { settler } = settling;
  const why = 'claims of payment channels fail';
  /** What is said once further rounds have shown it. */
  const after = (said: () => unknown) =>
    expect.poll(async () => {
      await refresh();
      return said();
    });
  await after(() => [settler.unavailable(), settler.cannotSend?.()]).toEqual([why, why]);
  expect(await settler.probe?.()).toEqual({ ok: true });
  await bed.charge(large, 10_001n);
  await after(() => settler.probe?.()).toEqual({ ok: false, detail: why });
  operate = bed.contract.operate;
  await after(() => settler.probe?.()).toEqual({ ok: true });
  expect([settler.unavailable(), settler.cannotSend?.()]).toEqual([null, null]);
});

test('what no claim has recorded is published where a process has metrics', async () => {
  const published = new Map<string, () => Promise<number | null>>();
  const metrics = {
    publish: (name: string, _help: string, read: () => Promise<number | null>) => published.set(name, read),
  };
  open(7, metrics as unknown as RelayerMetrics);
  const oldest = () => published.get('channels_oldest_unclaimed_timestamp_seconds')?.();
  expect(await oldest()).toBeNull();
  await bed.charge(channel, 5000n);
  expect(await published.get('channels_claimable_usdc')?.()).toBe(0.005);
  expect(await oldest()).toBe(bed.clock.nowMs() / 1000);
});

test('the books compare deposits with the transfers that the contract passed on, and claims with what it recorded', async () => {
  const { books } = settling.settler;
  const deposit = { ...reservation('d', 'd'), state: 'settled', transaction: null, block: null } as unknown as Payment;
  expect(await books?.compare([deposit], 2000)).toEqual([
    { kind: 'unread', detail: 'the chain does not say what became of its authorization' },
  ]);
  await bed.charge(channel, 500n);
  await settling.claimAll(signal);
  bed.contract.put(channel.id, { totalClaimed: 100n });
  const rest = await books?.compareRest?.({ from: 0, to: 10 }, new Set(), bed.contract.block);
  expect(rest?.get(`channel:${channel.hex}`)).toMatchObject({ kind: 'missing', amount: 400n });
});

test('the command claims every charge, however small', async () => {
  await bed.charge(channel, 1n);
  expect(await settling.claimAll(signal)).toEqual({ claimed: 1n, writtenOff: 0n, setAside: 0 });
});

describe('refunds', () => {
  const begin = async () => {
    const calldata = refundCalldata(channel.config, 4000n, 0n, Buffer.alloc(65, 1));
    await bed.store.begin(operation('r', { kind: 'refund', channelId: channel.id, calldata }), { charged: 0n });
  };
  const state = async () => (await bed.store.operation('r'))?.state;

  test('that another process has stored are looked for every second, also after a look that failed', async () => {
    await settling.settler.load?.();
    await expect.poll(() => bed.clock.pendingSleeps()).toEqual([1000]);
    await begin();
    bed.contract.before = () => {
      throw new Error('the chain is away');
    };
    await bed.clock.advance(1000);
    await expect.poll(() => bed.messages()).toEqual(['warn: refunds wait']);
    bed.contract.before = () => {};
    await expect.poll(() => bed.clock.pendingSleeps()).toEqual([1000]);
    expect(await state()).toBe('open');
    await bed.clock.advance(1000);
    await expect.poll(state).toBe('done');
  });

  test('that this process has stored begin at once', async () => {
    await begin();
    settling.wake();
    await expect.poll(state).toBe('done');
  });

  test('that cannot begin now wait for the next look without an error', async () => {
    await begin();
    bed.contract.before = () => {
      throw new Error('the chain is away');
    };
    settling.wake();
    await expect.poll(() => bed.contract.asked.length).toBeGreaterThan(0);
    expect(await state()).toBe('open');
  });

  test('are not looked for any more after a stop', async () => {
    await settling.settler.load?.();
    await expect.poll(() => bed.clock.pendingSleeps()).toEqual([1000]);
    await settling.settler.stop();
    expect(bed.clock.pendingSleeps()).toEqual([]);
    await begin();
    await bed.clock.advance(5000);
    expect([await state(), bed.clock.pendingSleeps()]).toEqual(['open', []]);
  });
});

describe('a stop', () => {
  let alone: ReturnType<typeof open>;
  beforeEach(() => {
    alone = open(null);
  });

  test('of a process that settles alone claims everything', async () => {
    await bed.charge(channel, 1n);
    await alone.settler.stop();
    expect([claimed(), bed.clock.pendingSleeps()]).toEqual([1n, []]);
  });

  test('of an instance of several claims nothing: it has given its lease up', async () => {
    await bed.charge(channel, 1n);
    await settling.settler.stop();
    expect(claimed()).toBe(0n);
  });

  test('ends although the last claims fail, and tells the operator', async () => {
    await bed.charge(channel, 1n);
    bed.contract.before = () => {
      throw new Error('the chain is away');
    };
    await alone.settler.stop();
    expect(bed.messages()).toEqual(['warn: the last claims wait for the next start']);
  });

  test('waits for the last claims no longer than it may', async () => {
    await bed.charge(channel, 1n);
    const held = Promise.withResolvers<{ kind: 'unknown' }>();
    operate = () => held.promise;
    let hasEnded = false;
    const stop = alone.settler.stop().then(() => {
      hasEnded = true;
    });
    await expect.poll(() => bed.clock.pendingSleeps()).toEqual([WAIT_MS]);
    await bed.clock.advance(WAIT_MS - 1);
    expect(hasEnded).toBe(false);
    await bed.clock.advance(1);
    await stop;
    held.resolve({ kind: 'unknown' });
  });
});
