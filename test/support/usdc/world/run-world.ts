import { createHash } from 'node:crypto';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import type { BareRelayer, RelayerOptions } from '../../../../src/payment/relayer/relayer.ts';
import { createWallet } from '../../../../src/payment/relayer/transactions.ts';
import type { Outcome } from '../../../../src/payment/settler.ts';
import { createChainCheck, createTokenWatch } from '../../../../src/payment/usdc/checks.ts';
import { createEvidence } from '../../../../src/payment/usdc/evidence.ts';
import { USDC } from '../payments.ts';
import { BLOCK_MS, createWorldChain } from './chain.ts';
import { createDice } from './dice.ts';
import { createWorldProvider, type Handed } from './provider.ts';
import { drawScenario, START_MS } from './scenario.ts';
import { createVirtualTime } from './virtual-time.ts';

/** Milliseconds between two status reads of the relayer, as the selling side makes them. */
const GLANCE_MS = 1000;

/** How a payment ended, and when. */
export interface Ended {
  readonly id: string;
  readonly atMs: number;
  readonly outcome: Outcome;
}

/** Everything that a relayer did in its world, and the statuses that it reported. */
export interface Journal {
  readonly ended: Ended[];
  readonly handed: readonly Handed[];
  /** The hashes that were noted, and their payments. */
  readonly noted: { atMs: number; ids: string[]; hashes: string[] }[];
  readonly costs: { atMs: number; cost: object }[];
  readonly warnings: { atMs: number; message: string }[];
  /** The status that it reported to the selling side: null or the reason against sales. */
  readonly glances: { atMs: number; unavailable: string | null; refused: string[]; expectedWei: bigint }[];
  readonly heads: { atMs: number; listeners: number }[];
}

/** Runs a relayer in the world of a seed. Except for the relayer, everything is the same for the same seed. */
export async function runWorld(seed: string, create: (options: RelayerOptions) => BareRelayer) {
  const dice = createDice(seed);
  const scenario = drawScenario(seed, dice);
  const time = createVirtualTime(START_MS);
  const { clock } = time;
  const chain = createWorldChain(scenario, dice, clock.nowMs);
  const { client, handed } = createWorldProvider({ chain, scenario, dice, time });
  const wallet = createWallet(bytesToHex(createHash('sha256').update(seed).digest()), 5042);
  const listeners = new Set<() => void>();
  const sinceMs = (): number => clock.nowMs() - START_MS;
  const journal: Journal = {
    ended: [],
    handed,
    noted: [],
    costs: [],
    warnings: [],
    glances: [],
    heads: [],
  };
  const relayer = create({
    chain: client,
    usdc: USDC,
    wallet,
    clock,
    pollMs: 700,
    gatherMs: scenario.gatherMs,
    stallMs: 6000,
    check: createChainCheck(client, USDC, () => wallet.address, clock),
    evidence: createEvidence(client, USDC),
    token: createTokenWatch({
      chain: client,
      usdc: USDC,
      payTo: USDC,
      sender: () => wallet.address,
      clock,
      log: { error: () => {}, info: () => {} },
    }),
    isCareful: () => sinceMs() >= scenario.carefulFromMs,
    blockSharePercent: 60,
    onHead: (tell) => {
      listeners.add(tell);
      return () => void listeners.delete(tell);
    },
    noteBroadcast: async (entries) => {
      const hashes = [...new Set(entries.map(({ transaction }) => bytesToHex(transaction)))];
      const about = hashes.join();
      await clock.sleep(1 + 8 * dice('note', about, clock.nowMs()));
      if (chain.isDuring('disk')) throw new Error('the disk is away');
      const waits = ({ id }: { id: string }) => !(chain.isDuring('closed') && dice('closed', id) < 0.3);
      const ids = entries.filter(waits).map(({ id }) => id);
      journal.noted.push({ atMs: sinceMs(), ids, hashes });
      return new Set(ids);
    },
    onMined: (cost) => void journal.costs.push({ atMs: sinceMs(), cost }),
    log: { warn: (_, message) => void journal.warnings.push({ atMs: sinceMs(), message }) },
  });

  for (const { atMs, intents } of scenario.bursts)
    time.at(START_MS + atMs, () => {
      for (const [index, outcome] of relayer.settle(intents).entries())
        void outcome.then((end) => journal.ended.push({ id: intents[index]?.id ?? '', atMs: sinceMs(), outcome: end }));
    });
  for (const deed of scenario.deeds) time.at(START_MS + deed.atMs, () => chain.act(deed));
  for (const atMs of scenario.foreignMs) time.at(START_MS + atMs, chain.useNonce);
  for (let atMs = BLOCK_MS; atMs < scenario.stopMs; atMs += BLOCK_MS)
    time.at(START_MS + atMs, () => {
      chain.produce();
      if (scenario.hasHeads) for (const tell of [...listeners]) tell();
    });
  for (let atMs = GLANCE_MS / 3; atMs < scenario.stopMs; atMs += GLANCE_MS)
    time.at(START_MS + atMs, () => {
      const refused = [...scenario.payers.keys()].filter((payer) =>
        relayer.refuses?.(Buffer.from(payer.slice(2), 'hex')),
      );
      journal.glances.push({ atMs, unavailable: relayer.unavailable(), refused, expectedWei: relayer.expectedWei() });
      journal.heads.push({ atMs, listeners: listeners.size });
    });
  await time.runUntil(START_MS + scenario.stopMs);
  let isStopped = false;
  void relayer.stop().then(() => {
    isStopped = true;
  });
  await time.runUntil(START_MS + scenario.stopMs + 30_000);
  const submitted = scenario.bursts.flatMap(({ atMs, intents }) =>
    atMs <= scenario.stopMs + 30_000 ? intents : [],
  ).length;
  return { journal, submitted, isStopped, listeners: listeners.size };
}
