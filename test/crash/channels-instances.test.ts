import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { createKillLane, KILL_LANE, type KillLane, type Strike } from '../support/channels/kill-lane.ts';
import { readOpenOperations } from '../support/channels/kill-ledger.ts';
import { untilChannelsAreOffered } from '../support/channels/offered.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';
import { seed, seededRandom } from '../support/random.ts';
import { type Instances, startInstances, untilOneLeads } from '../support/service/instances.ts';
import { untilAllAreReady } from '../support/service/instances-checks.ts';
import { runCommand } from '../support/service/operator-command.ts';

/** In the quick lane each kind of kill once. Of the rounds that mine, one buyer takes a refund in one and one withdraws in the other. */
const ROUNDS = Number(process.env.ROUNDS ?? (process.env.SLOW ? 100 : 3));
const BUYERS = process.env.SLOW ? 4 : 3;
/** In ms. Blocks are quick, so that a round spends its time on kills. */
const BLOCK_MS = 150;
/** How long calls run before a kill at a random time, and how long a claim may take to be sent, in ms. */
const [LONGEST_MS, CLAIM_MS] = [500, 60_000];
/** How often a round is played until a claim is in flight at its kill. */
const TRIES = 5;
/** What the lane counts when a claim is in flight at a kill. */
const CLAIMING = 'claim in flight at the kill';

const random = seededRandom('channels-instances');
const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;

describePostgres('two instances that sell from channels and are killed', () => {
  let network: EmbeddedNetwork;
  let folder: string;
  let ledgerUrl: string;
  let service: Instances;
  let lane: KillLane;
  beforeAll(async () => {
    [network, ledgerUrl] = await Promise.all([startEmbeddedNetwork({ blockTimeMs: BLOCK_MS }), freshDatabase()]);
    folder = mkdtempSync(join(tmpdir(), 'percall-channels-instances-'));
    const env = { ...KILL_LANE.env, CHANNELS_AUTHORIZER_KEY: network.authorizer.privateKey };
    service = await startInstances(network, ledgerUrl, 2, env);
    await untilAllOfferChannels();
    lane = await createKillLane({ network, origin: service.origin, ask: service.ask }, BUYERS, random);
  });
  afterAll(async () => {
    await service?.stop();
    await network?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function untilAllOfferChannels(): Promise<void> {
    await untilAllAreReady(service);
    await Promise.all(service.origins.map((origin) => untilChannelsAreOffered(`${origin}/v1/paid/fees/estimate`)));
  }

  /** Kills an instance and starts it again at once. The other one goes on meanwhile. */
  async function killOne(killed: Instances['instances'][number]): Promise<() => Promise<void>> {
    await killed.kill();
    const started = killed.start();
    // A start that fails is reported by the round that waits for it.
    started.catch(() => {});
    return async () => {
      await started;
      await untilAllOfferChannels();
    };
  }
  const findLeader = async () => service.instances[await untilOneLeads(service)] as Instances['instances'][number];
  const isClaiming = async () =>
    (await readOpenOperations(service.ask)).some(({ kind, transaction }) => kind === 'claim' && transaction !== null);

  const kills: Record<string, Strike['kill']> = {
    'any instance': async (trading) => {
      await Promise.race([trading, delay(random() * LONGEST_MS)]);
      return killOne(pick(service.instances));
    },
    'the leader': async (trading) => {
      await Promise.race([trading, delay(random() * LONGEST_MS)]);
      return killOne(await findLeader());
    },
    'the leader, while a claim is in flight': async (trading) => {
      const leader = await findLeader();
      // Mining stops, so a claim that is sent stays in flight.
      await network.pauseMining();
      const late = AbortSignal.timeout(CLAIM_MS);
      while (!late.aborted && !(await isClaiming())) await Promise.race([trading, delay(20)]);
      if (late.aborted) lane.add('no claim came');
      const restart = await killOne(leader);
      // Read before a block is made: after it the other instance ends the claim.
      if (await isClaiming()) lane.add(CLAIMING);
      if (random() < 0.5) await delay(random() * LONGEST_MS);
      await network.resumeMining();
      return restart;
    },
  };

  test(
    `${ROUNDS} times kill -9 of one of them, of the leader, and of the leader while a claim is in flight: no answered call is lost, no deposit is made twice, and each buyer is charged what it was told`,
    async () => {
      const names = Object.keys(kills);
      const claimsMet = () => lane.counts[CLAIMING] ?? 0;
      for (let round = 0; round < ROUNDS; round++) {
        const name = names[round % names.length] as string;
        const context = `${name}, seed ${seed}, round ${round} (run again with SEED=${seed})`;
        const steady = name === 'the leader, while a claim is in flight';
        // In the slow lane the rounds take turns.
        const leaves = process.env.SLOW || steady ? undefined : round % 2 === 0 ? 'refund' : 'withdrawal';
        const strike: Strike = { steady, leaves, mines: !steady, kill: kills[name] as Strike['kill'] };
        for (let tries = 1; ; tries++) {
          const before = claimsMet();
          await lane.round(strike, context);
          if (!steady || claimsMet() > before) break;
          // Otherwise this test shows less than it says.
          expect(tries, `no claim was in flight: ${context}`).toBeLessThan(TRIES);
        }
        lane.add(name);
      }
      // Instances leave their claims to the next leader. After the last one the operator claims.
      for (const instance of service.instances) expect(await instance.stop()).toBe(0);
      const env = { ...embeddedEnvironment(network), ...KILL_LANE.env, LEDGER_URL: ledgerUrl, DATA_DIR: folder };
      const keys = { CHANNELS_AUTHORIZER_KEY: network.authorizer.privateKey, PUBLIC_ORIGIN: service.origin };
      const claimed = await runCommand('ledger', ['claim'], { cwd: folder, env: { ...env, ...keys } });
      expect([claimed.code, claimed.stdout], claimed.stderr).toEqual([0, expect.stringContaining('left unclaimed 0')]);
      await lane.finish(`after the last round, seed ${seed}`);
      process.stdout.write(`${ROUNDS} kills of instances, seed ${seed}: ${JSON.stringify(lane.counts)}\n`);
    },
    300_000 + ROUNDS * 30_000,
  );
});
