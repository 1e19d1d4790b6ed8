import { beforeEach, describe, expect, test } from 'vitest';
import type { ChainClient } from '../../../../../src/chain/rpc/client.ts';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { channelIdCalldata } from '../../../../../src/payment/channels/calldata.ts';
import { createChannelReader } from '../../../../../src/payment/channels/channel.ts';
import { DEPOSIT_COLLECTOR, SETTLEMENT } from '../../../../../src/payment/channels/scheme.ts';
import { createContractProbe } from '../../../../../src/payment/channels/settler.ts';
import { channelOf, scheme } from '../../../../support/channels/channel-payment.ts';
import { type ContractStandIn, createContractStandIn } from '../../../../support/channels/contract-stand-in.ts';
import { hash32 } from '../../../../support/ledger/ledger-rows.ts';
import { newKey } from '../../../../support/usdc/payments.ts';

let contract: ContractStandIn;
beforeEach(() => {
  contract = createContractStandIn();
});

describe('a read of channels', () => {
  const calls = () => contract.asked.filter(({ method }) => method === 'eth_call').length;
  const full = { balance: 5n, totalClaimed: 4n, withdrawAmount: 3n, withdrawAt: 1_800_000_000, refundNonce: 2n };

  test('shows their states in their order at one block, and zeros for a channel without a deposit', async () => {
    contract.put(hash32('a'), full);
    contract.put(hash32('c'), { balance: 9n });
    const states = await createChannelReader(contract.chain).read(['a', 'b', 'c'].map(hash32));
    const empty = { balance: 0n, totalClaimed: 0n, withdrawAmount: 0n, withdrawAt: 0, refundNonce: 0n, block: 1000 };
    expect(states).toEqual([{ ...full, block: 1000 }, empty, { ...empty, balance: 9n }]);
    expect(contract.asked).toMatchObject([
      { method: 'eth_getBlockByNumber', params: ['0x3e8', false], rank: 'settle' },
      { method: 'eth_call', params: [{}, '0x3e8'], rank: 'settle', fromOneProvider: true },
    ]);
  });

  test('takes 500 channels in one request, and none for no channel', async () => {
    const ids = Array.from({ length: 501 }, (_, at) => hash32(`${at}`));
    contract.put(ids[500]!, { balance: 8n });
    const states = await createChannelReader(contract.chain).read(ids);
    expect([states.length, states[500]?.balance, calls()]).toEqual([501, 8n, 2]);
    expect(await createChannelReader(contract.chain).read([])).toEqual([]);
    expect(calls()).toBe(2);
    await createChannelReader(contract.chain).read(ids.slice(0, 500));
    expect(calls()).toBe(3);
  });

  test('has the rank and the signal of its caller, and no signal where the caller has none', async () => {
    const { signal } = new AbortController();
    await createChannelReader(contract.chain).read([hash32('a')], { rank: 'offer', signal });
    expect(contract.asked).toMatchObject([{ rank: 'offer' }, { rank: 'offer' }]);
    expect(contract.asked[1]?.signal).toBe(signal);
    contract.asked.length = 0;
    await createChannelReader(contract.chain).read([hash32('a')]);
    expect(contract.asked.map((one) => 'signal' in one)).toEqual([false, false]);
  });

  test('is made again, three times at most, where the node answers from another block than the named one', async () => {
    let wrong = 2;
    const batch: typeof contract.chain.batch = async (calls, options) => {
      const outcomes = await contract.chain.batch(calls, options);
      const other = contract.answer('eth_call', [calls[1]?.params[0], '0x3e7']);
      return wrong-- > 0 ? [outcomes[0]!, { result: other }] : outcomes;
    };
    const { read } = createChannelReader({ ...contract.chain, batch });
    expect((await read([hash32('a')]))[0]?.block).toBe(1000);
    wrong = 3;
    await expect(read([hash32('a')])).rejects.toThrow('at another block');
    wrong = 1;
    await expect(read([hash32('a')], { atBlock: 1000 })).rejects.toThrow('at another block');
  });

  test('is at the block that its caller names', async () => {
    const [state] = await createChannelReader(contract.chain).read([hash32('a')], { atBlock: 990 });
    expect([state?.block, contract.asked[1]?.params[1]]).toEqual([990, '0x3de']);
  });

  test('rejects when the node answers anything else', async () => {
    await createChannelReader(contract.chain).read([hash32('a')]);
    const [call] = contract.asked.at(-1)?.params ?? [];
    const answerAt = (block: number) => contract.answer('eth_call', [call, `0x${block.toString(16)}`]);
    const answers: unknown[] = [7, '0x', '0x1234', answerAt(999)];
    for (const answer of answers) {
      const batch: typeof contract.chain.batch = async (calls, options) => {
        const [header] = await contract.chain.batch(calls, options);
        return [header!, { result: answer }];
      };
      const reader = createChannelReader({ ...contract.chain, batch });
      await expect(reader.read([hash32('a')]), String(answer)).rejects.toMatchObject({ status: 502 });
      const each = async () => [[{ result: answer }], [{ result: answerAt(1000) }]];
      expect(
        await createChannelReader({ ...contract.chain, each }).readEach([hash32('a')], 1000, 'collect'),
      ).toHaveLength(1);
    }
  });
});

describe('the look for the contracts', () => {
  const sample = channelOf(newKey().privateKey);
  const id = bytesToHex(scheme.channelId(sample));
  interface Answers {
    readonly settlement?: string;
    readonly collector?: string;
    readonly id?: unknown;
  }
  /** Nodes with code at these addresses, whose contract computes this id. */
  function node(...all: Answers[]) {
    const asked: unknown[] = [];
    const chain: Pick<ChainClient, 'each'> = {
      each: async (calls, options) => {
        asked.push(...calls.map(({ method, params }) => [method, params, options?.rank]));
        return (all.length === 0 ? [{}] : all).map(({ settlement = '0x60', collector = '0x60', id: own = id }) => [
          { result: settlement },
          { result: collector },
          own instanceof Error ? { error: new RpcError(-32000, own.message) } : { result: own },
        ]);
      },
    };
    return { asked, probe: createContractProbe(chain, scheme, sample) };
  }

  test('finds both, checks a channel’s id, and asks no more once they are found', async () => {
    const { asked, probe } = node();
    expect([await probe(), await probe()]).toEqual([{ ok: true }, { ok: true }]);
    expect(asked).toEqual([
      ['eth_getCode', [SETTLEMENT, 'latest'], 'collect'],
      ['eth_getCode', [DEPOSIT_COLLECTOR, 'latest'], 'collect'],
      ['eth_call', [{ to: SETTLEMENT, data: channelIdCalldata(sample) }, 'latest'], 'collect'],
    ]);
  });

  test('are missing by the word of two providers, or of all that answer', async () => {
    const gone = { settlement: '0x' };
    const away = { id: new Error('away') };
    expect(await node(gone, {}).probe()).toEqual({ ok: true });
    expect(await node(gone, {}, {}).probe()).toEqual({ ok: true });
    expect(await node(gone, gone, {}).probe()).toMatchObject({ ok: false });
    expect(await node(gone, away).probe()).toMatchObject({ ok: false });
  });

  test('are not offered while no provider can be asked', async () => {
    const probe = createContractProbe({ each: () => Promise.reject(new Error('away')) }, scheme, sample);
    expect(await probe()).toEqual({ ok: false, detail: 'the chain could not be read' });
  });

  test.each<[string, Parameters<typeof node>[0], string]>([
    ['the settlement contract is missing', { settlement: '0x' }, `no contract stands at ${SETTLEMENT}`],
    ['the collector is missing', { collector: '0x' }, `no contract stands at ${DEPOSIT_COLLECTOR}`],
    [
      'another contract stands there',
      { id: `0x${'11'.repeat(32)}` },
      `the contract at ${SETTLEMENT} computes other channel ids`,
    ],
    ['the chain cannot be read', { id: new Error('away') }, 'the chain could not be read'],
    ['the answer is none', { id: 7 }, 'the chain could not be read'],
  ])('says why channels are not offered when %s, and looks again the next time', async (_, answers, detail) => {
    const { asked, probe } = node(answers ?? {});
    expect(await probe()).toEqual({ ok: false, detail });
    const before = asked.length;
    expect(await probe()).toEqual({ ok: false, detail });
    expect(asked.length).toBe(2 * before);
  });
});
