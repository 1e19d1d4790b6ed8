import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLAIMS, REFUNDS, VOUCHERS } from '../support/chain/lying-channels.ts';
import { DEPOSITS, EXACT, FACILITATED } from '../support/chain/lying-sales.ts';
import { type LyingWorld, openLyingWorld, openStage, PROVIDERS, type Stage } from '../support/chain/lying-world.ts';

// One of four providers lies. Nothing is sold without money on the true chain, no payment is lost, and none that moved is denied.

/** Requests a second of Arc's public endpoint, in tests of honest providers that limit us. */
const ARC_PACE = 2;
/** Worlds at once: each waits for its blocks most of the time. */
const LANES = 4;

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

/** All of it. Where nobody lies, the place is without meaning. */
const MATRIX: readonly Case[] = Object.entries(RAILS).flatMap(([rail, lies]) =>
  Object.entries(lies).flatMap(([lie, run]) =>
    PACES.flatMap((pace) =>
      Array.from({ length: lie === 'nothing' ? 1 : PROVIDERS }, (_, place) => ({ rail, lie, place, pace, run })),
    ),
  ),
);

/** Each lie in the first place at rest, where everything is asked, and at one of the other places in turn at Arc's pace. */
const LIES = [...new Set(MATRIX.map(({ rail, lie }) => `${rail}, ${lie}`))];
const isInWalk = ({ rail, lie, place, pace }: Case): boolean => {
  const turn = 1 + (LIES.indexOf(`${rail}, ${lie}`) % (PROVIDERS - 1));
  return lie === 'nothing' || (pace === 'at rest' ? place === 0 : place === turn);
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
    const stage = await openStage(world, { place, pace: limit, env: envOf(rail, world) });
    try {
      await run(stage);
      const name = `${lie === 'nothing' ? 'no liar' : 'one liar'}, ${pace}`;
      times.set(name, [...(times.get(name) ?? []), ...stage.times()]);
      return await stage.judge();
    } finally {
      await stage.close();
    }
  });
}

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
