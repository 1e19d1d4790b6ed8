import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { seed as runSeed, seededRandom } from '../support/random.ts';
import { RELAYER_FAULTS, type RelayerFault } from '../support/usdc/relayer-faults.ts';
import { openStage } from '../support/usdc/relayer-stage.ts';

// Each seed is some payers and a fault at a random time, on a real node, through the real payment rail: from the header to the bytes that leave. At the
// end no payment was charged twice or without an answer, no payer of a charged payment was answered 402, and the seller has what the ledger says.
// SEED=<seed> runs one again.

/** In the quick lane a fault has one seed, or one for each side of what it disturbs. */
const SEEDS = process.env.SEED ? 1 : process.env.SLOW ? 100 : 2;
const seedsOf = ({ hasSides }: RelayerFault): number => (SEEDS === 2 && !hasSides ? 1 : SEEDS);
/** Most of a seed's time is waiting. All faults share these places, and each test waits for its own seeds. */
const AT_ONCE = 30;
const TEST_MS = process.env.SLOW ? 3_600_000 : 300_000;

const seeds = Array.from({ length: SEEDS }, (_, at) => (process.env.SEED ? runSeed : `${runSeed}-${at}`));

let network: EmbeddedNetwork;
const results = new Map<string, Promise<string[]>[]>();
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 200 });
  const places = createPlaces(AT_ONCE);
  for (const [name, fault] of Object.entries(RELAYER_FAULTS)) {
    const plays = seeds
      .slice(0, seedsOf(fault))
      .map((seed) => places(fault.weight ?? 1, () => play(name, fault, seed)));
    results.set(name, plays);
  }
});
afterAll(async () => {
  await network.stop();
});

/** Runs a limited number of tasks at once, by weight, in the order of the calls. */
function createPlaces(places: number) {
  let free = places;
  let turn: Promise<unknown> = Promise.resolve();
  let wake = () => {};
  const take = async (weight: number): Promise<void> => {
    while (free < weight)
      await new Promise<void>((go) => {
        wake = go;
      });
    free -= weight;
  };
  return <T>(wanted: number, run: () => Promise<T>): Promise<T> => {
    const weight = Math.min(wanted, places);
    const started = turn.then(() => take(weight));
    turn = started;
    return started.then(run).finally(() => {
      free += weight;
      wake();
    });
  };
}

/** The faults that one seed found, as text. */
async function play(name: string, fault: RelayerFault, seed: string): Promise<string[]> {
  const stage = await openStage(network, fault);
  try {
    const number = Number(/-(\d+)$/.exec(seed)?.[1] ?? 0);
    const endings = await fault.run(stage, seededRandom(name, seed), number);
    stage.proxy.play({});
    const found = await stage.findings();
    for (const [sale, ending] of endings) {
      const last = sale.answers.at(-1) ?? 'no answer';
      if (!ending.test(last)) found.push(`expected ${ending}: ${sale.answers.join(', ')}`);
    }
    return found.map((finding) => `SEED=${seed}: ${finding}`);
  } catch (error) {
    return [`SEED=${seed}: ${error instanceof Error ? error.message : String(error)}`];
  } finally {
    await stage.close();
  }
}

test.each(Object.entries(RELAYER_FAULTS))(
  'a node that %s charges no payment twice, leaves none open, and the ledger agrees with the chain',
  async (name, fault) => {
    const found = (await Promise.all(results.get(name) ?? [])).flat();
    expect(found).toEqual([]);
    expect(results.get(name)).toHaveLength(seedsOf(fault));
  },
  TEST_MS,
);
