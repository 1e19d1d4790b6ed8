import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { USDC } from '../../dev/contracts.ts';
import { bytesToHex } from '../../src/lib/hex.ts';
import { BEHIND_BLOCKS, behind, farAhead, inventedBalance, inventedPayment } from '../support/chain/lies.ts';
import { CLAIMS, REFUNDS, VOUCHERS } from '../support/chain/lying-channels.ts';
import type { LyingProvider } from '../support/chain/lying-provider.ts';
import { DEPOSITS, EXACT, FACILITATED } from '../support/chain/lying-sales.ts';
import { type LyingWorld, openLyingWorld, openStage, PROVIDERS, type Stage } from '../support/chain/lying-world.ts';

// One of four providers lies. Nothing is sold without money on the true chain, no payment is lost, and none that moved
// is denied.

/** Requests a second of Arc's public endpoint, in tests of honest providers that limit us. */
const ARC_PACE = 2;
/** Worlds at once: each waits for its blocks most of the time. */
const LANES = 5;

interface Case {
  readonly rail: string;
  readonly lie: string;
  readonly place: number;
  readonly pace: 'at rest' | 'at 2 requests/s';
  readonly run: (stage: Stage) => Promise<void>;
}

/** Lies by what is paid for. */
const RAILS = {
  exact: EXACT,
  deposit: DEPOSITS,
  voucher: VOUCHERS,
  claim: CLAIMS,
  refund: REFUNDS,
  facilitator: FACILITATED,
};
/** What a rail's service is configured with. Claims wait for a whole USDC or minutes, but where they are tested. */
function envOf(rail: string, { facilitator }: LyingWorld): Record<string, string> {
  if (rail === 'facilitator') return { SETTLER: 'facilitator', REMOTE_FACILITATOR_URL: facilitator.url };
  const claimAfter = rail === 'claim' ? '1' : '300';
  return { CHANNELS_WITHDRAW_DELAY_SECONDS: '900', CHANNELS_CLAIM_AFTER_SECONDS: claimAfter };
}
const PACES = ['at rest', 'at 2 requests/s'] as const;

/** Where nobody lies, the place is without meaning. */
const LIARLESS = ['nothing', 'reorganised'];

const MATRIX: readonly Case[] = Object.entries(RAILS).flatMap(([rail, lies]) =>
  Object.entries(lies).flatMap(([lie, run]) =>
    PACES.flatMap((pace) =>
      Array.from({ length: LIARLESS.includes(lie) ? 1 : PROVIDERS }, (_, place) => ({ rail, lie, place, pace, run })),
    ),
  ),
);

/**
 * Each lie about plain payments is told in the first place at rest, where everything is asked, and in one of the other
 * places at Arc's pace. The lies about the rest are told in one of the two ways, by turns.
 */
const LIES = [...new Set(MATRIX.map(({ rail, lie }) => `${rail}, ${lie}`))];
const isInWalk = ({ rail, lie, place, pace }: Case): boolean => {
  const at = LIES.indexOf(`${rail}, ${lie}`);
  if (LIARLESS.includes(lie)) return rail === 'exact' || pace === 'at rest';
  const isTurn = pace === 'at rest' ? place === 0 : place === 1 + (at % (PROVIDERS - 1));
  return isTurn && (rail === 'exact' || (at % 2 === 0) === (pace === 'at rest'));
};
/** `SLOW=1` takes the whole matrix, otherwise a fixed walk through it. */
const CASES = process.env.SLOW ? MATRIX : MATRIX.filter(isInWalk);

let worlds: LyingWorld[] = [];
/** Worlds that no case uses now, and cases that wait for one. */
const free: LyingWorld[] = [];
const waiting: ((world: LyingWorld) => void)[] = [];
const times = new Map<string, number[]>();

beforeAll(async () => {
  worlds = await Promise.all(Array.from({ length: LANES }, openLyingWorld));
  free.push(...worlds);
});
afterAll(async () => {
  await Promise.all(worlds.map((world) => world.stop()));
  for (const [name, all] of [...times].sort())
    process.stderr.write(`honest buyers’ p50, ${name}: ${Math.round(p50(all))} ms of ${all.length}\n`);
});

async function inWorld<T>(work: (world: LyingWorld) => Promise<T>): Promise<T> {
  const world = free.pop() ?? (await new Promise<LyingWorld>((next) => waiting.push(next)));
  return work(world).finally(() => {
    const next = waiting.shift();
    if (next) next(world);
    else free.push(world);
  });
}

function p50(all: readonly number[]): number {
  return [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
}

/** Runs a case and returns what it has done. */
function judged({ rail, lie, place, pace, run }: Case) {
  return inWorld(async (world) => {
    const limit = pace === 'at rest' ? null : ARC_PACE;
    const isLiarless = LIARLESS.includes(lie);
    const stage = await openStage(world, { place, pace: limit, isLiarless, env: envOf(rail, world) });
    try {
      await run(stage);
      const name = `${lie === 'nothing' ? 'no liar' : 'one liar'}, ${pace}`;
      if (rail === 'exact') times.set(name, [...(times.get(name) ?? []), ...stage.times()]);
      return await stage.judge();
    } finally {
      await stage.close();
    }
  });
}

describe('a provider of the tests', () => {
  const account = Buffer.alloc(20, 7);
  const balance = (tag = 'latest') => {
    const data = `0x70a08231${bytesToHex(account).slice(2).padStart(64, '0')}`;
    return { method: 'eth_call', params: [{ to: USDC, data }, tag] };
  };
  const header = (tag = 'latest') => ({ method: 'eth_getBlockByNumber', params: [tag, false] });
  const head = { method: 'eth_blockNumber', params: [] };
  type Said = { id: number; result: never; error?: { message: string } };

  /** One request, as a batch. */
  async function ask({ url }: LyingProvider, ...calls: { method: string; params: unknown[] }[]): Promise<Said[]> {
    const body = JSON.stringify(calls.map((one, id) => ({ jsonrpc: '2.0', id, ...one })));
    const answer = await fetch(url, { method: 'POST', body });
    return answer.status === 429 ? [] : ((await answer.json()) as Said[]);
  }
  const oneOf = ({ providers }: LyingWorld): LyingProvider => providers[0] as LyingProvider;

  test('tells the truth, then one lie in all its answers, then the truth again', () =>
    inWorld(async (world) => {
      const liar = oneOf(world);
      const [before] = await ask(liar, balance());
      liar.lie({ ...inventedBalance(account, 5n), ...farAhead });
      const said = await ask(liar, balance(), head, header(), header('0x10000'));
      liar.lie(null);
      const [after] = await ask(liar, balance());
      const block = { number: '0x10000000000000' };
      expect([before, after].map((one) => BigInt(String(one?.result)))).toEqual([0n, 0n]);
      expect(BigInt(String(said[0]?.result))).toBe(5n);
      expect(said.slice(1).map(({ result }) => result)).toMatchObject([block.number, block, { number: '0x10000' }]);
    }));

  test('that is behind has nothing of newer blocks', () =>
    inWorld(async (world) => {
      const liar = oneOf(world);
      await world.network.mine(BEHIND_BLOCKS);
      const [truth] = await ask(liar, head);
      liar.lie(behind);
      const newest = String(truth?.result);
      const said = await ask(liar, head, header(newest), balance(newest));
      liar.lie(null);
      expect(Number(said[0]?.result)).toBeLessThan(Number(newest));
      expect(said[1]?.result).toBeNull();
      expect(said[2]?.error?.message).toContain('request beyond head block');
    }));

  test('shows a payment that never was, each time the same, and counts what it is asked', () =>
    inWorld(async (world) => {
      const liar = oneOf(world);
      const terms = { from: account, to: account, value: 1n, nonce: Buffer.alloc(32, 8) };
      const counted = liar.counts().eth_getTransactionReceipt ?? 0;
      liar.lie(inventedPayment(terms));
      const asked = { method: 'eth_getTransactionReceipt', params: [`0x${'ab'.repeat(32)}`] };
      const [said, again] = [await ask(liar, asked), await ask(liar, asked)];
      liar.lie(null);
      const [truth] = await ask(liar, asked);
      expect(said[0]?.result).toMatchObject({ status: '0x1', logs: [{ address: USDC }, { address: USDC }] });
      expect(again).toEqual(said);
      expect([truth?.result, liar.counts().eth_getTransactionReceipt]).toEqual([null, counted + 3]);
    }));

  test('with a limit refuses what is beyond it, by a status or by an error', () =>
    inWorld(async (world) => {
      const provider = oneOf(world);
      provider.pace(1);
      const said = [];
      for (let at = 0; at < 5; at++) said.push(await ask(provider, head));
      provider.pace(null);
      expect(said[0]?.[0]).toHaveProperty('result');
      expect(said.some((answers) => answers.length === 0)).toBe(true);
      expect(said.some(([answer]) => answer?.error?.message.includes('limit'))).toBe(true);
    }));
});

describe('of four providers one lies', { concurrent: true }, () => {
  for (const one of CASES)
    test(`${one.rail}, ${one.lie}; the liar at place ${one.place}, the others ${one.pace}`, async () => {
      const { said, ...verdict } = await judged(one);
      expect(verdict, said.join('\n')).toEqual({
        soldForNothing: 0,
        lost: 0,
        falseDenials: 0,
        unserved: 0,
        broken: [],
      });
    });
});
