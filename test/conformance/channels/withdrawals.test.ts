import { decodeFunctionData, decodeFunctionResult, encodeFunctionResult, type Hex, multicall3Abi } from 'viem';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { RpcError } from '../../../src/chain/rpc/wire.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { createChannelReader } from '../../../src/payment/channels/channel.ts';
import { createWithdrawalAlarms } from '../../../src/payment/channels/claim-health.ts';
import { openChannelsSettler } from '../../../src/payment/channels/settler.ts';
import { createWithdrawalWatch } from '../../../src/payment/channels/withdrawals.ts';
import { createEvidence } from '../../../src/payment/usdc/evidence.ts';
import type { Channel } from '../../../src/store/ports/channels.ts';
import type { ChainChannel } from '../../support/channels/chain-channels.ts';
import { createChannelStage } from '../../support/channels/channel-contract.ts';
import { scheme } from '../../support/channels/channel-payment.ts';
import { DEPOSIT, NETWORK, openClaimsBed } from '../../support/channels/claims-bed.ts';
import { channelState, channelTerms, voucherSale } from '../../support/ledger/channel-rows.ts';
import { quiet } from '../../support/quiet.ts';
import { until } from '../../support/service/workers.ts';

// Withdrawals from payment channels are beaten: the real ledger, the real relayer, the contract on a real node.

const DELAY = 900;
let network: EmbeddedNetwork;
let stage: ReturnType<typeof createChannelStage>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  stage = createChannelStage(network);
});
afterAll(() => network?.stop());

let bed: Awaited<ReturnType<typeof openClaimsBed>>;
/** Answers in the node's place. Undefined leaves the answer to the node. */
let fault: ((method: string, params: readonly unknown[]) => unknown) | null;
beforeEach(async () => {
  bed = await openClaimsBed(network, stage);
  fault = null;
});
afterEach(() => bed.close());

/** The chain, whose node the test lets refuse a request. */
const chain = (): OpenChainClient => ({
  ...bed.chain,
  agreed: {
    ...bed.chain.agreed,
    head: async (options) => Number((await fault?.('eth_blockNumber', [])) ?? (await bed.chain.agreed.head(options))),
  },
  each: async ([call, ...more], options) => {
    const answer = await fault?.(call?.method ?? '', call?.params ?? []);
    return answer === undefined && call ? bed.chain.each([call, ...more], options) : [[{ result: answer }]];
  },
});

/** A clock that runs this much ahead of the machine's. */
const ahead = (ms: number) => ({ ...systemClock, nowMs: () => systemClock.nowMs() + ms });

/** The channels' settlement as the service opens it. Claims wait for a whole USDC or an hour. */
function openSettler() {
  const { store, channels, relayer, wallet } = bed;
  const { receiver, token, authorizer } = channels;
  const { settler } = openChannelsSettler(
    {
      setup: {
        scheme,
        network: NETWORK,
        terms: { receiver, token, withdrawDelay: DELAY, receiverAuthorizer: Buffer.alloc(20) },
        channels: {
          withdrawDelaySeconds: DELAY,
          authorizerKey: bytesToHex(authorizer.privateKey),
          minDeposit: 1n,
          depositsADay: { payer: 0, client: 0 },
          claimFrom: 1_000_000n,
          claimAfterSeconds: 3600,
        },
      },
      store,
      chain: chain(),
      evidence: createEvidence(bed.chain, network.usdc),
      sender: wallet.address,
      probe: async () => ({ ok: true }),
      metrics: undefined,
      clock: systemClock,
      log: quiet,
    },
    {
      noteBroadcast: async () => new Set(),
      relayer: () => ({ ...relayer, unavailable: () => null, cannotSend: () => null, refusesCode: () => null }),
    },
  );
  if (!settler.refresh) throw new Error('the rail has no rounds');
  return { refresh: settler.refresh };
}

function openWatch(clock = systemClock) {
  const { store } = bed;
  return createWithdrawalWatch({
    store,
    reader: createChannelReader(chain()),
    chain: chain(),
    alarms: createWithdrawalAlarms(clock),
    network: NETWORK,
    withdrawDelaySeconds: DELAY,
    clock,
    log: quiet,
  });
}

async function withdrawing(amount: bigint): Promise<ChainChannel> {
  const [channel] = await bed.funded(1);
  if (!channel) throw new Error('no channel');
  await bed.charge(channel, 5n);
  await bed.withdraw(channel, amount);
  return channel;
}
const pending = async (channel: ChainChannel) => (await bed.noted(channel)).state.withdrawAmount;
const refuseLogs = (method: string) => {
  if (method === 'eth_getLogs') throw new RpcError(-32000, 'query returned more than 10000 results');
};

describe('a round of the service', () => {
  test('claims what a withdrawal could take, in the round that sees the withdrawal', async () => {
    const settling = openSettler();
    await settling.refresh();
    const channel = await withdrawing(DEPOSIT);
    await settling.refresh();
    expect(await pending(channel)).toBe(DEPOSIT);
    await until('the charges are claimed', async () => (await bed.recorded(channel)) === 5n);
  });

  test('claims what is due although the logs cannot be read, and says that they cannot', async () => {
    const [channel] = await bed.funded(1);
    if (!channel) throw new Error('no channel');
    await bed.charge(channel, 1_000_000n);
    fault = refuseLogs;
    await expect(openSettler().refresh()).rejects.toThrow('query returned more than 10000 results');
    await until('the charges are claimed', async () => (await bed.recorded(channel)) === 1_000_000n);
  });

  test('ends while a claim waits for its block, so that the next rounds watch and probe meanwhile', async () => {
    const settling = openSettler();
    const [channel] = await bed.funded(1);
    if (!channel) throw new Error('no channel');
    await bed.charge(channel, 1_000_000n);
    await network.pauseMining();
    try {
      await settling.refresh();
      const isSent = async () => (await bed.store.openOperations(1))[0]?.transaction != null;
      await until('the claim is sent', isSent);
      await settling.refresh();
      expect(await isSent()).toBe(true);
    } finally {
      await network.resumeMining();
    }
    await until('the charges are claimed', async () => (await bed.recorded(channel)) === 1_000_000n);
  });
});

describe('the watch over withdrawals', () => {
  test('reads the states of channels by its timer although the logs cannot be read', async () => {
    const channel = await withdrawing(7n);
    fault = refuseLogs;
    await expect(openWatch(ahead(DELAY * 1000)).run()).rejects.toThrow('query returned');
    expect(await pending(channel)).toBe(7n);
  });

  test('reads the logs although the states of old channels cannot be read', async () => {
    const watch = openWatch();
    await watch.run();
    const channel = await withdrawing(7n);
    const list = bed.store.listUnclaimed;
    bed.store.listUnclaimed = async () => {
      throw new Error('no list');
    };
    await expect(watch.run()).rejects.toThrow('no list');
    bed.store.listUnclaimed = list;
    expect(await pending(channel)).toBe(7n);
  });

  test('halves a range of blocks that the node refuses, and misses no block of it', async () => {
    const watch = openWatch();
    await watch.run();
    const opened = await bed.funded(3);
    for (const channel of opened) await bed.withdraw(channel, 7n);
    const ranges: [number, number][] = [];
    fault = (method, params) => {
      if (method !== 'eth_getLogs') return;
      const [from, to] = rangeOf(params);
      if (to > from) throw new RpcError(-32000, 'query returned more than 10000 results');
      ranges.push([from, to]);
    };
    await watch.run();
    expect(await Promise.all(opened.map(pending))).toEqual([7n, 7n, 7n]);
    expect([ranges.length > 1, gapsOf(ranges)]).toEqual([true, []]);
  });

  test('goes on where the reading ended, and skips no block of a long outage', async () => {
    const watch = openWatch();
    await watch.run();
    const start = Number(await bed.chain.request<string>('eth_blockNumber', []));
    const ranges: [number, number][] = [];
    let isBroken = true;
    // A node whose chain has grown by more blocks than three requests may span.
    fault = (method, params) => {
      if (method === 'eth_blockNumber') return `0x${(start + 35_000).toString(16)}`;
      if (method !== 'eth_getLogs') return undefined;
      if (isBroken && ranges.length === 2) throw new Error('no provider answers');
      ranges.push(rangeOf(params));
      return [];
    };
    await expect(watch.run()).rejects.toThrow('no provider answers');
    isBroken = false;
    await watch.run();
    expect(ranges[0]?.[0]).toBeLessThanOrEqual(start + 1);
    expect([gapsOf(ranges), ranges.at(-1)?.[1]]).toEqual([[], start + 35_000]);
    expect(ranges.filter(([from, to]) => to - from >= 10_000)).toEqual([]);
  });

  test('reads every channel with unclaimed charges by its timer, and not only the oldest 500', async () => {
    const youngest = await chargedLater(520);
    await openWatch(ahead(DELAY * 1000)).run();
    expect((await bed.noted(youngest)).state.withdrawAmount).toBe(7n);
    const unread = (await bed.store.listUnclaimed(NETWORK, 1000)).filter(({ readAt }) => readAt < systemClock.nowMs());
    expect(unread).toEqual([]);
  });

  test('reads the other channels of a page although one of them cannot be read, and says so', async () => {
    const broken = await withdrawing(7n);
    const others = [await withdrawing(8n), await withdrawing(9n)];
    fault = (method, params) => (method === 'eth_call' ? withoutChannel(params, broken.id) : undefined);
    await expect(openWatch(ahead(DELAY * 1000)).run()).rejects.toThrow('cannot be read');
    expect(await Promise.all([broken, ...others].map(pending))).toEqual([0n, 8n, 9n]);
  });

  test('reads the pages after one that cannot be read', async () => {
    const youngest = await chargedLater(520);
    let calls = 0;
    fault = (method) => {
      refuseLogs(method);
      if (method === 'eth_call' && ++calls === 1) throw new Error('no provider answers');
    };
    await expect(openWatch(ahead(DELAY * 1000)).run()).rejects.toThrow('no provider answers');
    expect(await pending(youngest)).toBe(7n);
  });
});

/** The node's answer to a Multicall3 request, as the contract gives it where the calls about this channel fail. */
async function withoutChannel(params: readonly unknown[], id: Uint8Array): Promise<string> {
  const [{ data }] = params as [{ data: Hex }];
  const abi = multicall3Abi;
  const { args } = decodeFunctionData({ abi, data });
  const [calls] = args as unknown as [readonly { allowFailure: boolean; callData: Hex }[]];
  const isBroken = calls.map(({ callData }) => callData.includes(bytesToHex(id).slice(2)));
  if (calls.some(({ allowFailure }, at) => isBroken[at] && !allowFailure)) throw new RpcError(3, 'execution reverted');
  const answer = await bed.chain.request<Hex>('eth_call', params);
  const results = decodeFunctionResult({ abi, functionName: 'aggregate3', data: answer });
  const result = results.map((one, at) => (isBroken[at] ? { success: false, returnData: '0x' as const } : one));
  return encodeFunctionResult({ abi, functionName: 'aggregate3', result });
}

/** The first and the last block of a request for logs. */
function rangeOf([filter]: readonly unknown[]): [number, number] {
  const { fromBlock, toBlock } = filter as { fromBlock: string; toBlock: string };
  return [Number(fromBlock), Number(toBlock)];
}
/** Ranges that do not begin where the one before ended. */
const gapsOf = (ranges: readonly [number, number][]) =>
  ranges.slice(1).filter(([from], at) => from !== Number(ranges[at]?.[1]) + 1);

/** Unclaimed charges of channels that the chain does not know, and then of one whose payer withdraws. */
async function chargedLater(others: number): Promise<ChainChannel> {
  for (let at = 0; at < others; at++) {
    const name = `other ${at}`;
    const known: Channel = await bed.store.note(channelTerms(name), channelState({ block: 0 }), at);
    expect(known.charged).toBe(0n);
    expect(
      await bed.store.charge(voucherSale(name, name, 100n, { reservedAt: at }), new Uint8Array(), 0),
    ).not.toBeNull();
  }
  return withdrawing(7n);
}
