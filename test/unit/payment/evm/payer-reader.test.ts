import { randomBytes } from 'node:crypto';
import { encodeDeployData } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { artifacts } from '../../../../dev/contracts.ts';
import type { OpenChainClient } from '../../../../src/chain/rpc/client.ts';
import { UpstreamFailed } from '../../../../src/errors.ts';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import {
  createAdmissionReader,
  createPayerReader,
  PAYER_READER_CODE,
  payerReaderCall,
} from '../../../../src/payment/usdc/payer-reads.ts';
import { openClient } from '../../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../../support/chain/rpc-server.ts';
import { watchedChain } from '../../../support/chain/watched-chain.ts';
import { createManualClock } from '../../../support/manual-clock.ts';
import { USDC } from '../../../support/usdc/payments.ts';

/** The longest creation code with its arguments that a node runs (EIP-3860). */
const MAX_INIT_CODE = 49_152;
const WORD = 64;
const STAYS = new AbortController().signal;
const newPayer = () => ({ from: randomBytes(20), nonce: randomBytes(32) });
const word = (value: bigint): string => value.toString(16).padStart(WORD, '0');

describe('the call', () => {
  test('runs the contract whose source is in scripts/contracts', () => {
    expect(PAYER_READER_CODE).toBe(artifacts.PayerReader.bytecode);
  });

  test.each([1, 2, 150])('is encoded for %i payers as the compiler would, and short enough', (count) => {
    const payers = Array.from({ length: count }, newPayer);
    const questions = payers.map(({ from, nonce }) => ({ account: bytesToHex(from), nonce: bytesToHex(nonce) }));
    const { abi, bytecode } = artifacts.PayerReader;
    const call = payerReaderCall(USDC, payers);
    expect(call).toBe(encodeDeployData({ abi, bytecode, args: [USDC, questions] }));
    expect(call.length / 2 - 1).toBeLessThan(MAX_INIT_CODE);
  });
});

describe('a reader', () => {
  let node: RpcServer;
  let chain: OpenChainClient;
  beforeEach(async () => {
    node = await startRpcServer();
    chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 30_000 });
  });
  afterEach(async () => {
    await chain.close();
    await node.stop();
  });

  /** A node that takes no call without `to`, and answers each payer's own three. */
  function refuseTogether(how: () => unknown): void {
    Object.assign(node.methods, {
      eth_getBlockByNumber: () => ({ number: '0x7d0', timestamp: '0x1' }),
      eth_getCode: () => '0x',
      eth_call: ([call]: [{ to?: string; data: string }]) => {
        if (call.to === undefined) return how();
        return call.data.startsWith('0x70a08231') ? `0x${word(9n)}` : `0x${word(1n)}`;
      },
    });
  }
  const together = (): number =>
    node.bodies
      .flat()
      .filter((call) => ((call as { params: { data?: string }[] }).params[0]?.data ?? '').startsWith(PAYER_READER_CODE))
      .length;
  const ends = async (reads: readonly Promise<unknown>[]): Promise<unknown[]> =>
    (await Promise.allSettled(reads)).map((end) => (end.status === 'fulfilled' ? end.value : end.reason));

  const GARBAGE = `${'z'.repeat(2)}0x${'1'.repeat(2 * WORD - 2)}`;
  test.each<[string, unknown]>([
    ['that is no text', 7],
    ['that is nothing', '0x'],
    ['with something before its number', GARBAGE],
    ['with something behind its number', `0x${'1'.repeat(2 * WORD - 2)}zz`],
    ['of another length', `0x${word(1n)}`],
    ['that is shorter than a number', '0x7d0'],
  ])('takes an answer %s for none, and asks for each part by itself, as it is now', async (_, answer) => {
    refuseTogether(() => answer);
    const payer = newPayer();
    const reading = await createPayerReader(chain, USDC)(payer, STAYS);
    expect(reading).toEqual({ used: true, hasCode: false, balance: 9n, block: 2000 });
    const asked = node.bodies.flat() as { method: string; params: unknown[] }[];
    const paramsOf = (name: string) => asked.filter(({ method }) => method === name).map(({ params }) => params);
    expect(paramsOf('eth_call').map(([, block]) => block)).toEqual(['latest', '0x7d0', '0x7d0']);
    expect(paramsOf('eth_getCode')).toEqual([[bytesToHex(payer.from), '0x7d0']]);
    expect(paramsOf('eth_getBlockByNumber').map(([block]) => block)).toEqual(['latest', '0x7d0']);
  });

  test('that finds the chain away asks for nothing else, and together again the next time', async () => {
    refuseTogether(() => `0x${[2000n, (500n << 8n) | 1n].map(word).join('')}`);
    const read = createPayerReader(chain, USDC);
    const isTogether = (call: unknown) =>
      ((call as { params: { data?: string }[] }).params[0]?.data ?? '').startsWith(PAYER_READER_CODE);
    node.fault = (calls) => (calls.some(isTogether) ? '500' : null);
    expect(await ends([read(newPayer(), STAYS)])).toEqual([expect.any(UpstreamFailed)]);
    expect(node.count('eth_getCode')).toBe(0);
    node.fault = null;
    expect(await ends([read(newPayer(), STAYS)])).toMatchObject([{ balance: 500n, block: 2000 }]);
    expect(node.count('eth_getCode')).toBe(0);
  });

  test('understands each word: balance, used, code, and that the token did not answer for one payer', async () => {
    const words = [(500n << 8n) | 1n, (7n << 8n) | 3n, ((2n ** 248n - 1n) << 8n) | 5n, 2n];
    node.methods.eth_call = () => `0x${[2000n, ...words].map(word).join('')}`;
    const read = createPayerReader(chain, USDC);
    const all = await ends(words.map(() => read(newPayer(), STAYS)));
    expect(all.slice(0, 3)).toEqual([
      { balance: 500n, used: false, hasCode: false, block: 2000 },
      { balance: 7n, used: true, hasCode: false, block: 2000 },
      { balance: 2n ** 248n - 1n, used: false, hasCode: true, block: 2000 },
    ]);
    expect(all[3]).toBeInstanceOf(UpstreamFailed);
    expect(all[3]).toMatchObject({ message: expect.stringMatching(/^chain: /) });
    expect(node.count('eth_call')).toBe(1);
  });

  test.each([
    [
      'refuses it',
      () => {
        throw new RpcFault(-32602, 'missing field to');
      },
    ],
    [
      'runs out of gas',
      () => {
        throw new RpcFault(-32000, 'out of gas');
      },
    ],
    ['treats it as a call of an account without code', () => '0x'],
    ['answers fewer words', () => `0x${word(2000n)}`],
    ['answers no hex', () => ({ code: 1 })],
  ])('asks in one batch where the node %s, for a minute', async (_, how) => {
    refuseTogether(how);
    const clock = createManualClock(0);
    const read = createPayerReader(chain, USDC, clock);
    const burst = async (): Promise<unknown[]> => {
      const reads = Array.from({ length: 3 }, () => read(newPayer(), STAYS));
      await clock.advance(4);
      return ends(reads);
    };
    const reading = { balance: 9n, used: true, hasCode: false, block: 2000 };
    expect(await burst()).toEqual([reading, reading, reading]);
    expect([together(), node.count('eth_getBlockByNumber')]).toEqual([1, 2]);
    expect(await burst()).toEqual([reading, reading, reading]);
    expect([together(), node.count('eth_getBlockByNumber')]).toEqual([1, 4]);
    await clock.advance(60_000);
    expect(await burst()).toEqual([reading, reading, reading]);
    expect([together(), node.count('eth_getBlockByNumber')]).toEqual([2, 6]);
  });

  test('in a batch too, blames the token’s failure for one payer on no other payer', async () => {
    const [bad, good] = [newPayer(), newPayer()];
    refuseTogether(() => '0x');
    const answer = node.methods.eth_call;
    node.methods.eth_call = (params) => {
      const [call] = params as [{ to?: string; data: string }];
      if (call.to && call.data.includes(bad.from.toString('hex'))) throw new RpcFault(3, 'execution reverted');
      return answer?.(params);
    };
    const read = createPayerReader(chain, USDC);
    const [first, second] = await ends([read(bad, STAYS), read(good, STAYS)]);
    expect(first).toBeInstanceOf(UpstreamFailed);
    expect(second).toMatchObject({ balance: 9n });
  });

  describe('for payers of whom nothing is known yet', () => {
    const BUSY = { status: 503, code: 'chain_busy' };
    const answered = (count: number) => () => `0x${[2000n, ...Array<bigint>(count).fill(1n)].map(word).join('')}`;
    /** The chain as its providers’ limits make it: what they bear a second, and whether a request may go now. */
    function limited({ perSecond = Number.POSITIVE_INFINITY, isReady = true } = {}) {
      const ranks: unknown[] = [];
      const watched = watchedChain(chain);
      const waiting: (() => void)[] = [];
      const over = {
        ...watched.chain,
        requestsPerSecond: () => perSecond,
        ready: (rank: unknown) => {
          ranks.push(rank);
          return isReady ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve));
        },
      };
      const clock = createManualClock(0);
      return { clock, ranks, asked: watched.asked, waiting, read: createAdmissionReader(over, USDC, clock) };
    }

    test('asks with their rank, once the providers bear it', async () => {
      node.methods.eth_call = answered(1);
      const { clock, ranks, asked, read } = limited();
      const reading = read(newPayer(), STAYS, 'c');
      await clock.advance(4);
      expect(await reading).toMatchObject({ block: 2000 });
      expect([ranks, asked]).toEqual([['offer'], [{ method: 'eth_call', rank: 'offer' }]]);
    });

    test('asks in one batch with their rank as well', async () => {
      refuseTogether(() => '0x');
      const { clock, asked, read } = limited();
      const reading = read(newPayer(), STAYS, 'c');
      await clock.advance(4);
      await reading;
      expect(new Set(asked.map(({ rank }) => rank))).toEqual(new Set(['offer']));
    });

    test('lets as many wait as can be read before the wait is over, by half of what the providers bear', async () => {
      node.methods.eth_call = answered(3);
      // A hundredth of a request a second: three payers in three seconds.
      const { clock, read } = limited({ perSecond: 0.01 });
      const [first, second, third, fourth] = ['a', 'b', 'c', 'd'].map((client) => read(newPayer(), STAYS, client, 2));
      await expect(fourth).rejects.toMatchObject(BUSY);
      await clock.advance(4);
      for (const one of [first, second, third]) expect(await one).toMatchObject({ block: 2000 });
    });

    test('lets 4,096 wait where the providers have no limit, shared so that the client that comes last finds a place', async () => {
      const { read, waiting, ranks } = limited({ isReady: false });
      const reads = Array.from({ length: 2049 }, () => read(newPayer(), STAYS, 'greedy', 2));
      for (const one of reads) one.catch(() => {});
      await expect(reads.at(-1)).rejects.toMatchObject(BUSY);
      let isRefused = false;
      read(newPayer(), STAYS, 'other').catch(() => {
        isRefused = true;
      });
      await new Promise((next) => setImmediate(next));
      expect([isRefused, waiting.length, ranks.length]).toEqual([false, 1, 1]);
    });

    test('keeps a quarter of the places for clients without a failed call', async () => {
      node.methods.eth_call = answered(4);
      // Four payers in three seconds.
      const { clock, read } = limited({ perSecond: 4 / 225 });
      const failed = ['a', 'b', 'c', 'd'].map((client) => read(newPayer(), STAYS, client, 1));
      await expect(failed[3]).rejects.toMatchObject(BUSY);
      const honest = read(newPayer(), STAYS, 'honest', 2);
      await clock.advance(4);
      for (const one of [...failed.slice(0, 3), honest]) expect(await one).toMatchObject({ block: 2000 });
    });

    test('asks once more for all who wait where the providers refused a request for its number alone', async () => {
      let refusals = 0;
      node.methods.eth_call = () => {
        if (refusals++ === 0) throw new RpcFault(-32011, 'request limit reached');
        return answered(2)();
      };
      const clock = createManualClock(1_800_000_000_000);
      const learning = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 30_000, clock });
      const read = createAdmissionReader(learning, USDC, clock);
      const reads = ends([read(newPayer(), STAYS, 'a'), read(newPayer(), STAYS, 'b')]);
      let isOver = false;
      void reads.then(() => {
        isOver = true;
      });
      while (!isOver) {
        await clock.advance(20);
        await new Promise((next) => setTimeout(next, 1));
      }
      for (const one of await reads) expect(one).toMatchObject({ block: 2000 });
      expect(refusals).toBe(2);
      await learning.close();
    });

    test('lets no payer wait for longer than three seconds', async () => {
      const { clock, read } = limited({ isReady: false });
      const waiting = read(newPayer(), STAYS, 'c');
      let end: unknown = null;
      waiting.catch((error) => {
        end = error;
      });
      await clock.advance(2999);
      expect(end).toBeNull();
      await clock.advance(1);
      expect(end).toMatchObject(BUSY);
    });
  });

  test.each(['500', 'garbage', 'reset'] as const)(
    'says that the chain failed to all who wait when it answers %s',
    async (fault) => {
      node.fault = fault;
      const read = createPayerReader(chain, USDC);
      const all = await ends(Array.from({ length: 5 }, () => read(newPayer(), STAYS)));
      for (const one of all) expect(one).toBeInstanceOf(UpstreamFailed);
    },
  );
});
