import { beforeEach, describe, expect, test } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { channelIdCalldata } from '../../../../../src/payment/rails/usdc-channels/calldata.ts';
import { createChannelReader } from '../../../../../src/payment/rails/usdc-channels/channel-reader.ts';
import { createContractProbe } from '../../../../../src/payment/rails/usdc-channels/contract-probe.ts';
import { DEPOSIT_COLLECTOR, SETTLEMENT } from '../../../../../src/payment/rails/usdc-channels/scheme.ts';
import { channelOf, scheme } from '../../../../support/channels/channel-payment.ts';
import { type ContractStandIn, createContractStandIn } from '../../../../support/channels/contract-stand-in.ts';
import { hash32 } from '../../../../support/ledger/ledger-rows.ts';
import { newKey } from '../../../../support/usdc/payments.ts';

let contract: ContractStandIn;
beforeEach(() => {
  contract = createContractStandIn();
});

describe('a read of channels', () => {
  const full = { balance: 5n, totalClaimed: 4n, withdrawAmount: 3n, withdrawAt: 1_800_000_000, refundNonce: 2n };

  test('shows their states in their order at one block, and zeros for a channel without a deposit', async () => {
    contract.put(hash32('a'), full);
    contract.put(hash32('c'), { balance: 9n });
    const states = await createChannelReader(contract.chain).read(['a', 'b', 'c'].map(hash32));
    const empty = { balance: 0n, totalClaimed: 0n, withdrawAmount: 0n, withdrawAt: 0, refundNonce: 0n, block: 1000 };
    expect(states).toEqual([{ ...full, block: 1000 }, empty, { ...empty, balance: 9n }]);
    expect(contract.asked).toMatchObject([{ method: 'eth_call', params: [{}, 'latest'], rank: 'settle' }]);
  });

  test('takes 500 channels in one request, and none for no channel', async () => {
    const ids = Array.from({ length: 501 }, (_, at) => hash32(`${at}`));
    contract.put(ids[500]!, { balance: 8n });
    const states = await createChannelReader(contract.chain).read(ids);
    expect([states.length, states[500]?.balance, contract.asked.length]).toEqual([501, 8n, 2]);
    expect(await createChannelReader(contract.chain).read([])).toEqual([]);
    expect(contract.asked).toHaveLength(2);
    await createChannelReader(contract.chain).read(ids.slice(0, 500));
    expect(contract.asked).toHaveLength(3);
  });

  test('has the rank and the signal of its caller, and no signal where the caller has none', async () => {
    const { signal } = new AbortController();
    await createChannelReader(contract.chain).read([hash32('a')], { rank: 'offer', signal });
    expect(contract.asked).toMatchObject([{ rank: 'offer', signal }]);
    const options: unknown[] = [];
    const chain = {
      request: async <T>(...[method, params, given]: Parameters<typeof contract.chain.request>): Promise<T> => {
        options.push(given);
        return contract.chain.request<T>(method, params);
      },
    };
    await createChannelReader(chain).read([hash32('a')]);
    expect(options).toEqual([{ rank: 'settle' }]);
  });

  test('rejects when the node answers anything else', async () => {
    const chain = { request: async <T>(): Promise<T> => 7 as T };
    await expect(createChannelReader(chain).read([hash32('a')])).rejects.toMatchObject({ status: 502 });
  });
});

describe('the look for the contracts', () => {
  const sample = channelOf(newKey().privateKey);
  const id = bytesToHex(scheme.channelId(sample));
  /** A node with code at these addresses, whose contract computes this id. */
  function node(answers: { settlement?: string; collector?: string; id?: unknown } = {}) {
    const asked: unknown[] = [];
    const known: Record<string, unknown> = {
      [SETTLEMENT]: answers.settlement ?? '0x60',
      [DEPOSIT_COLLECTOR]: answers.collector ?? '0x60',
    };
    const chain = {
      request: async <T>(method: string, params: readonly unknown[], options?: { rank?: string }): Promise<T> => {
        asked.push([method, params, options?.rank]);
        if (method === 'eth_getCode') return known[String(params[0])] as T;
        if (answers.id instanceof Error) throw answers.id;
        return (answers.id ?? id) as T;
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
    const { asked, probe } = node(answers);
    expect(await probe()).toEqual({ ok: false, detail });
    const before = asked.length;
    expect(await probe()).toEqual({ ok: false, detail });
    expect(asked.length).toBe(2 * before);
  });
});
