import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { balanceOf } from '../../../dev/tokens.ts';
import { addressOf } from '../../../src/lib/secp256k1.ts';
import { buyEvenly, type Call, type Purchase, TRIES } from './buyer.ts';
import { type Load, prepareLoad } from './load.ts';
import type { LoadReport } from './load-worker.ts';
import type { FloodOptions } from './options.ts';
import { requirementOf } from './payments.ts';
import type { Met } from './providers.ts';
import { lightningPurchase, readChallenge, usdcPurchase } from './purchases.ts';
import type { Flood, Line, Scenario } from './scenarios.ts';
import { type Stage, setStage } from './stage.ts';
import { createWallets } from './wallets.ts';

/** What one line showed. */
export interface Played {
  readonly flood: string;
  readonly line: string;
  readonly calls: readonly Call[];
  /** Payments of the honest buyer that moved by the end; null over Lightning, where the buyer pays before it presents. */
  readonly paid: number | null;
  /** What the chain's providers met from the flood's start to the buyer's last answer. */
  readonly met: readonly Met[];
  /** Null without a flood. */
  readonly load: LoadReport | null;
  /** Cores that the service took. */
  readonly serviceCores: number;
  /** How late this process's own timers were, in milliseconds, 99th percentile: much of it would spoil what was measured. */
  readonly ownDelayMs: number;
  /** Of the last minute: far above the machine's cores, other work has spoilt the times. */
  readonly machineLoad: number;
}

/** The service has caught up with the chain and its providers have rested. */
const QUIET_MS = 3000;
/** The flood flows for so long before the honest buyer comes. */
const LEAD_MS = 2000;
const BUYER = '127.0.0.9';
/** Contract payers: enough for a minute. */
const WALLETS = 1200;

/** Plays one line of a scenario on a stage of its own. */
export async function play(scenario: Scenario, line: Line, options: FloodOptions): Promise<Played> {
  const keep = (what: string) =>
    options.keepIn && join(options.keepIn, `${scenario.name}-${line.name.replace('/', '-')}.${what}`);
  const stage = await setStage(scenario, options, keep('log'));
  try {
    const played = await perform(stage, scenario, line, options.calls);
    const [metricsFile, playedFile] = [keep('metrics'), keep('json')];
    if (metricsFile) await writeFile(metricsFile, await (await fetch(`${stage.service.origin}/metrics`)).text());
    if (playedFile) await writeFile(playedFile, JSON.stringify(played, null, 1));
    return played;
  } finally {
    await stage.stop();
  }
}

async function perform(stage: Stage, scenario: Scenario, line: Line, calls: number): Promise<Played> {
  const { service, providers } = stage;
  const buyer = await createBuyer(stage, line, calls);
  const load = scenario.flood && (await createLoad(stage, scenario.flood, line));
  await delay(QUIET_MS);
  for (const provider of providers) provider.forget();
  const before = await service.processorSeconds();
  const started = performance.now();
  load?.go();
  await delay(LEAD_MS);
  const timers = monitorEventLoopDelay({ resolution: 10 });
  timers.enable();
  const bought = await buyEvenly(calls, line.everyMs, buyer.purchase);
  timers.disable();
  const met = providers.flatMap((provider) => provider.met);
  const seconds = (performance.now() - started) / 1000;
  const serviceCores = ((await service.processorSeconds()) - before) / seconds;
  return {
    flood: scenario.name,
    line: line.name,
    calls: bought,
    paid: await buyer.paid(),
    met,
    load: load && (await load.stop()),
    serviceCores,
    ownDelayMs: timers.percentile(99) / 1e6,
    machineLoad: loadavg()[0] ?? Number.NaN,
  };
}

interface Buyer {
  readonly purchase: () => Purchase;
  paid(): Promise<number | null>;
}

/** The honest buyer: an address, a key and the money for every try. */
async function createBuyer({ network, gateway, service }: Stage, line: Line, calls: number): Promise<Buyer> {
  const counter = { origin: service.origin, path: line.path, from: BUYER };
  const { lightning } = network;
  if (line.pays === 'lightning') {
    if (!lightning) throw new Error('this scenario has no Lightning nodes');
    return { purchase: () => lightningPurchase(counter, lightning.pay), paid: async () => null };
  }
  const requirement = requirementOf(await readChallenge(counter), line.pays);
  const key = randomBytes(32);
  const address = addressOf(key);
  const price = BigInt(requirement.amount);
  const units = price * BigInt(calls * TRIES);
  const overGateway = line.pays === 'gateway' ? gateway : null;
  if (overGateway) overGateway.deposit(address, units);
  else await network.fundUsdc(address, units);
  const left = async () => (overGateway ? overGateway.balanceOf(address) : balanceOf(network, address));
  return {
    purchase: () => usdcPurchase(counter, requirement, key),
    paid: async () => Number((units - (await left())) / price),
  };
}

async function createLoad({ service, network }: Stage, flood: Flood, line: Line): Promise<Load> {
  const { kind, clients, perSecondEach, path = line.path } = flood;
  const counter = { origin: service.origin, path, from: '127.0.0.1' };
  const rail = kind === 'gateway' ? 'gateway' : 'plain';
  const requirement = kind === 'offers' ? null : requirementOf(await readChallenge(counter), rail);
  const isContracts = kind === 'contracts' && requirement !== null;
  const wallets = isContracts ? await createWallets(network.rpc, WALLETS, BigInt(requirement.amount)) : [];
  return prepareLoad({
    kind,
    origin: service.origin,
    path,
    requirement,
    wallets,
    addresses: Array.from({ length: clients }, (_, index) => `127.1.${index >> 7}.${1 + (index & 127)}`),
    perSecond: clients * perSecondEach,
  });
}
