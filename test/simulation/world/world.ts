import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WORLD } from '../engine/owner.ts';
import { createRandom } from '../engine/random.ts';
import { createScheduler } from '../engine/scheduler.ts';
import { useVirtualTime } from '../engine/time.ts';
import { createTrace } from '../engine/trace.ts';
import { createSharedLedger, useSharedLedger } from '../ledger/shared-ledger.ts';
import { useWire } from '../network/current.ts';
import { createWire } from '../network/wire.ts';
import { createEvidence } from '../record/evidence.ts';
import { createBook, readAny } from '../record/presentation.ts';
import type { Scenario } from '../run/scenario.ts';
import type { LoadedService } from '../seam.ts';
import { createCatalogue } from '../service/catalogue.ts';
import { environmentOf } from '../service/environment.ts';
import { createInstance, createLogSink, type Instance } from '../service/instance.ts';
import { createAccounts } from './accounts.ts';
import { createChain } from './chain/chain.ts';
import { createFacilitator } from './facilitator.ts';
import { createGateway } from './gateway.ts';
import { createHandings } from './handings.ts';
import { createLightningNode } from './lightning.ts';
import { createPayers } from './payers.ts';
import { createProviders } from './providers.ts';
import { createSources } from './sources.ts';

/** When every seed begins: some afternoon, so that a day ends only where a move lets it. */
const START_MS = 1_800_014_400_000;
const CHAIN_ID = 5042;
/** The chain is older than the ten minutes that a search goes back. */
const CHAIN_AGE_MS = 3_600_000;

export interface WorldOptions {
  readonly seed: string;
  readonly scenario: Scenario;
  readonly service: LoadedService;
  /** Called with every event, in order. */
  readonly onEvent?: ((line: string) => void) | null;
}

/** Memory where there is some: the files of a seed are gone with it. */
function newFolder(): string {
  for (const place of ['/dev/shm', tmpdir()]) {
    try {
      return mkdtempSync(join(place, 'percall-sim-'));
    } catch {
      // The next place.
    }
  }
  throw new Error('no place for the files of a seed');
}

/** Everything of a seed: the simulated world, the service in it, and the book of what was asked and answered. */
export function createWorld({ seed, scenario, service, onEvent = null }: WorldOptions) {
  const random = (name: string) => createRandom(`${seed} ${name}`);
  const trace = createTrace(START_MS, onEvent);
  const scheduler = createScheduler(START_MS, random('ties'), trace);
  useVirtualTime({ scheduler, random: random('chance') });
  const wire = createWire(scheduler, random('wire'));
  useWire(wire);
  const folder = newFolder();
  const accounts = createAccounts(random('accounts'));
  const payers = createPayers(random('payers'));
  const chain = createChain({
    scheduler,
    chainId: CHAIN_ID,
    genesisMs: START_MS - CHAIN_AGE_MS,
    relayer: accounts.relayer.address,
  });
  chain.begin((view) => {
    for (const { address } of Object.values(accounts)) view.set(`balance ${address}`, 10n ** 20n);
    view.set(`balance ${accounts.seller.address}`, 0n);
    payers.fund(view);
  });
  const handings = createHandings(scheduler.nowMs, chain, accounts.relayer.address);
  const providers = createProviders({
    chain,
    scheduler,
    random: random('providers'),
    count: scenario.providers,
    perSecond: scenario.perSecond,
  });
  const facilitator = createFacilitator({
    chain,
    scheduler,
    random: random('facilitator'),
    account: accounts.facilitator,
    onHanded: handings.toFacilitator,
  });
  const gateway = createGateway({
    chainId: CHAIN_ID,
    scheduler,
    random: random('gateway'),
    onHanded: handings.toGateway,
  });
  for (const { address, units } of payers.all()) if (units > 0n) gateway.deposit(address, units);
  const lightning = createLightningNode({ scheduler, random: random('lightning') });
  const sources = createSources({ scheduler, random: random('sources') });
  const hosts = [
    ...providers.hosts,
    ...sources.hosts,
    ...[facilitator, gateway, lightning].map(({ origin, host }) => [origin, host] as const),
  ];
  for (const [origin, host] of hosts) wire.hosts.set(origin, host);
  const ledger = createSharedLedger({ folder, scheduler, random: random('ledger') });
  useSharedLedger(ledger);

  const book = createBook(scheduler.nowMs);
  const catalogue = createCatalogue({ service, nowMs: scheduler.nowMs, head: chain.head });
  const log = createLogSink();
  const troubles: string[] = [];
  const suspensions: { readonly fromMs: number; readonly toMs: number }[] = [];
  const spoiltDisks: { readonly fromMs: number; readonly toMs: number }[] = [];
  const answers: { readonly atMs: number; readonly text: string }[] = [];
  const instances = namesOf(scenario).map((name) => newInstance(name));

  function newInstance(name: string): Instance {
    const dataDir = join(folder, name);
    mkdirSync(dataDir, { recursive: true });
    const env = environmentOf({ scenario, name, dataDir, chain, providers, gateway, facilitator, lightning, accounts });
    const logger = service.createLogger('info', log as never);
    return createInstance({
      name,
      scheduler,
      random: random(`instance ${name}`),
      start: () => service.start(env, logger, catalogue.endpoints, { pages: false, tools: scenario.tools }),
      onAnswer: (request, answer) => {
        answers.push({ atMs: scheduler.nowMs(), text: `${JSON.stringify(answer.headers)} ${answer.body}` });
        book.answered(request, readAny(request, answer, scheduler.nowMs()));
      },
      onFailed: (error) => void troubles.push(error instanceof Error ? error.message : String(error)),
    });
  }

  return {
    seed,
    scenario,
    folder,
    random,
    trace,
    scheduler,
    wire,
    accounts,
    payers,
    chain,
    providers,
    facilitator,
    gateway,
    lightning,
    sources,
    ledger,
    book,
    catalogue,
    log,
    troubles,
    answers,
    instances,
    handings,
    evidence: createEvidence(chain),
    startMs: START_MS,
    /** A process, or the machine, is suspended for so long from now on. */
    noteSuspended: (ms: number): void => {
      const fromMs = scheduler.nowMs();
      suspensions.push({ fromMs, toMs: fromMs + ms });
    },
    /** Whether one was, at some time between: what it had looked at before may be stale when it goes on. */
    wasSuspended: (fromMs: number, toMs: number): boolean =>
      suspensions.some((one) => one.fromMs <= toMs && one.toMs >= fromMs),
    /** A disk of the service fails for so long from now on. */
    noteSpoiltDisk: (ms: number): void => {
      const fromMs = scheduler.nowMs();
      spoiltDisks.push({ fromMs, toMs: fromMs + ms });
    },
    /** Whether one failed, at some time between: what was learnt then may be gone after the next start. */
    hadSpoiltDisk: (fromMs: number, toMs: number): boolean =>
      spoiltDisks.some((one) => one.fromMs <= toMs && one.toMs >= fromMs),
    /** Writes a line into the trace. */
    note: (what: string) => trace.note(scheduler.nowMs(), WORLD.name, what),
    end(): void {
      for (const instance of instances) instance.kill();
      ledger.close();
      useSharedLedger(null);
      useVirtualTime(null);
      useWire(null);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type World = ReturnType<typeof createWorld>;

function namesOf({ instances, twin }: Scenario): string[] {
  const names = Array.from({ length: instances }, (_, at) => String.fromCharCode(97 + at));
  return twin ? [...names, 'twin'] : names;
}
