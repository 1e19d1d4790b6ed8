import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { type KillProxy, type Standing, startKillProxy } from '../support/chain/kill-proxy.ts';
import { createKillLane, KILL_LANE, type KillLane, type Strike } from '../support/channels/kill-lane.ts';
import { type ChannelPoint, channelPoints } from '../support/channels/kill-points.ts';
import { untilChannelsAreOffered } from '../support/channels/offered.ts';
import { left, rowsOf, watchRise } from '../support/ledger/kill-ledger.ts';
import { seed, seededRandom, shuffled } from '../support/random.ts';
import { createProcess } from '../support/service/process.ts';

/** In the slow lane each kill is at one of the fourteen points, or at random. In the quick lane eleven kills are at all of them. */
const ROUNDS = process.env.SLOW ? Number(process.env.ROUNDS ?? 500) : 11;
const BUYERS = process.env.SLOW ? 5 : 3;
/** In ms. Blocks are quick, so that a round spends its time on kills. */
const BLOCK_MS = 150;
/** How long the calls of a round with a random kill run, in ms: longer than a block, so that kills come before, during and after deposits. */
const LONGEST_MS = 600;
/** How often a kill point that was missed is tried again. A kill that hits no point is checked like any other. */
const TRIES = 10;
/** How often the service is stopped until nothing is left to claim. A stop claims only as much as it can in some seconds. */
const STOPS = 10;
/** In ms: how long a point may take to be reached, how long a request is held there, and how long a short-lived point may take to appear. */
const [REACH_MS, HOLD_MS, RISE_MS] = [10_000, 100, 3000];

type Row = Record<string, unknown>;

let network: EmbeddedNetwork;
let proxy: KillProxy;
let folder: string;
let file: string;
let service: Awaited<ReturnType<typeof createProcess>>;
let lane: KillLane;
/** Only the service may recover the files of a dead one, so their rows are read from a copy. */
let isDead = false;
const random = seededRandom('channels-kill');

beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: BLOCK_MS });
  proxy = await startKillProxy(network.rpcUrl);
  folder = mkdtempSync(join(tmpdir(), 'percall-channels-kill-'));
  file = join(folder, 'ledger.db');
  const env = {
    ...KILL_LANE.env,
    CHANNELS_AUTHORIZER_KEY: network.authorizer.privateKey,
    RPC_URLS: proxy.url,
  };
  service = await createProcess(network, folder, env);
  await start();
  const read = async (sql: string): Promise<Row[]> => (isDead ? left<Row>(file, sql) : rowsOf<Row>(file, sql));
  lane = await createKillLane({ network, origin: service.origin, ask: read }, BUYERS, random);
});
afterAll(async () => {
  await service?.kill();
  await proxy?.stop();
  await network?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the service and waits until it has found the contracts. */
async function start(): Promise<void> {
  await service.start();
  isDead = false;
  await untilChannelsAreOffered(`${service.origin}/v1/paid/fees/estimate`);
}

/** Stops the service, which then claims everything. A busy machine may leave some of it: the next run and its stop claim that. */
async function stopWithAllClaimed(): Promise<void> {
  const unclaimed = () => rowsOf(file, 'SELECT id FROM channels WHERE unclaimed_since IS NOT NULL').length;
  expect(await service.stop()).toBe(0);
  for (let stops = 1; unclaimed() > 0; stops++) {
    expect(stops, 'stops that left something unclaimed').toBeLessThan(STOPS);
    await start();
    expect(await service.stop()).toBe(0);
  }
}

async function kill(): Promise<void> {
  isDead = true;
  await service.kill();
}

/**
 * The order of the kills, from the seed, each with its points. In the slow lane about seven in ten are at a named point, each point equally often, the others
 * at random times. In the quick lane points share kills.
 */
function drawPlan(points: readonly ChannelPoint[]): (readonly ChannelPoint[])[] {
  const rounds = Math.max(1, Math.floor((ROUNDS * 0.7) / points.length)) * points.length;
  const alone = Array.from({ length: ROUNDS }, (_, at) =>
    at < rounds ? [points[at % points.length] as ChannelPoint] : [],
  );
  const shared = [...Map.groupBy(points, ({ kill }) => kill).values()].map((those) => those.toReversed());
  return shuffled(process.env.SLOW ? alone : shared, random);
}

/** The kill at these points, or after a random time. `there` tells afterwards whether it came at the points. */
function strikeAt(points: readonly ChannelPoint[]): Strike & { there(): boolean } {
  const is = (name: 'deposits' | 'discards' | 'steady' | 'unmined') => points.some((point) => point[name]);
  const [unmined, leaves] = [is('unmined'), points.find((point) => point.leaves)?.leaves];
  const begins = Promise.withResolvers<void>();
  let there = true;

  async function killAtRandom(trading: Promise<unknown>): Promise<() => Promise<void>> {
    await Promise.race([trading, delay(random() * LONGEST_MS)]);
    await kill();
    return start;
  }
  async function killAtPoints(trading: Promise<unknown>): Promise<() => Promise<void>> {
    if (unmined) await network.pauseMining();
    const standings: Standing[] = [];
    for (const { stop, rises } of points) {
      const standing = proxy.stopAt(stop, () => {
        if (rises === undefined) return true;
        // A short-lived point: the signal must be sent in the same tick in which the test sees it.
        const risen = watchRise(file, rises, RISE_MS);
        if (risen) void kill();
        return risen;
      });
      standings.push(standing);
      // The point of the buyer that leaves is reached before the others trade.
      if (standings.length === points.length) begins.resolve();
      await Promise.race([standing.reached, trading, delay(REACH_MS, undefined, { ref: false })]);
    }
    if (points.every(({ rises }) => rises === undefined)) await delay(random() * HOLD_MS);
    there = standings.every((standing) => standing.holds());
    await kill();
    for (const standing of standings) standing.letGo();
    return async () => {
      if (unmined && random() < 0.5) await network.resumeMining();
      await start();
      if (unmined) await network.resumeMining();
    };
  }
  return {
    deposits: is('deposits'),
    discards: is('discards'),
    steady: is('steady'),
    leaves,
    mines: !unmined,
    begins: leaves && points.length > 1 ? begins.promise : undefined,
    kill: points.length > 0 ? killAtPoints : killAtRandom,
    there: () => there,
  };
}

test(
  `${ROUNDS} times kill -9 during deposits, vouchers, claims, refunds and withdrawals: no answered call is lost, no deposit is made twice, and each buyer is charged what it was told`,
  async () => {
    const points = channelPoints(network.relayer.address.toLowerCase());
    const reached = new Map<string, number>(points.map(({ name }) => [name, 0]));
    for (const [at, those] of drawPlan(points).entries()) {
      const what = those.map(({ name }) => name).join('; ') || 'at random';
      for (let tries = 1; ; tries++) {
        const context = `${what}, seed ${seed}, round ${at} (run again with SEED=${seed})`;
        const strike = strikeAt(those);
        const remains = await lane.round(strike, context);
        if (strike.there() && those.every(({ shows }) => shows(remains))) {
          for (const { name } of those) reached.set(name, (reached.get(name) ?? 0) + 1);
          break;
        }
        lane.add('points missed');
        expect(tries, `never there: ${context}`).toBeLessThan(TRIES);
      }
    }
    await stopWithAllClaimed();
    await lane.finish(`after the last round, seed ${seed}`);
    expect(rowsOf(file, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
    // The kills must have come at every point. Otherwise this test shows nothing.
    expect([...reached].filter(([, times]) => times === 0)).toEqual([]);
    expect(reached.size).toBe(14);
    const told = [...reached].map(([name, times]) => `\n  ${times} × ${name}`).join('');
    process.stdout.write(`${ROUNDS} kills of channels, seed ${seed}: ${JSON.stringify(lane.counts)}${told}\n`);
  },
  ROUNDS * 30_000,
);
