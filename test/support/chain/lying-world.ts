import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Hex, pad } from 'viem';
import { startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { writeFreshLedger } from '../ledger/fresh-ledger.ts';
import { latchedEndpoint } from '../service/latch.ts';
import { type Answer, type Service, serviceWith } from '../service/service.ts';
import { until, untilReady } from '../service/workers.ts';
import { decoded, isPending, present } from '../usdc/buyer.ts';
import { startLocalFacilitator } from '../usdc/local-facilitator.ts';
import { balanceSlot, markOf, type Terms } from './lies.ts';
import { type LyingProvider, type Seen, startLyingProvider } from './lying-provider.ts';

/** Providers of a world, in the order of RPC_URLS. */
export const PROVIDERS = 4;
/** How long an honest buyer goes on presenting, in milliseconds: at rest, and where the honest providers limit us. */
const PATIENCE_MS = { rest: 15_000, limited: 45_000 };
const AGAIN_MS = 150;

/** Short waits: the tests present again and again. */
const ENV = {
  COLLECTOR: 'off',
  SETTLE_WAIT_MS: '800',
  RPC_TIMEOUT_MS: '5000',
  RELAYER_GATHER_MS: '0',
};

/**
 * A real chain with four providers, of which one may lie. Services follow one another on it, each with a ledger of its
 * own.
 */
export async function openLyingWorld() {
  const network = await startEmbeddedNetwork({ blockTimeMs: 150 });
  const seen: Seen = new Map();
  const providers: LyingProvider[] = [];
  for (let at = 0; at < PROVIDERS; at++) providers.push(await startLyingProvider(network.rpcUrl, seen));
  const facilitator = await startLocalFacilitator(network);

  return {
    network,
    providers,
    facilitator,
    seen,
    /** The providers tell the truth again, and limit nobody. */
    honest: (): void => {
      facilitator.fault(null);
      for (const provider of providers) {
        provider.lie(null);
        provider.pace(null);
      }
    },
    stop: async (): Promise<void> => {
      await Promise.all(providers.map((provider) => provider.stop()));
      await facilitator.stop();
      await network.stop();
    },
  };
}

export type LyingWorld = Awaited<ReturnType<typeof openLyingWorld>>;

/** What is presented: a request, its payment, and whether the true chain has the money for its answer. */
export interface Order {
  readonly path: string;
  readonly header: string;
  hasMoved(): Promise<boolean>;
}

/** An order that is presented, and what came back. */
export interface Presented extends Order {
  readonly answers: Answer[];
  /** Milliseconds from the first presentation to the answer that was paid for; null before. */
  servedMs: number | null;
  /** Whether an answer was sold before the true chain had its money. */
  isUnpaid: boolean;
  present(): Promise<Answer>;
}

/** What a case has done to buyers and seller. A promise holds where all of it is 0; `said` tells what happened. */
export interface Verdict {
  /** Answers whose money the true chain does not show. */
  readonly soldForNothing: number;
  /** Payments that the true chain shows, and that were never answered with 200. */
  readonly lost: number;
  /** Payments that the true chain shows, and that were refused with 402. */
  readonly falseDenials: number;
  /** Honest buyers who got no answer, although three providers are honest. */
  readonly unserved: number;
  /** Other promises that do not hold, in words. */
  readonly broken: readonly string[];
  readonly said: readonly string[];
}

interface StageOptions {
  readonly place: number;
  /** Requests a second that the honest providers take; null for no limit. */
  readonly pace: number | null;
  /** Whether nobody lies, so that the one at `place` is honest too. */
  readonly isLiarless?: boolean;
  /** What the rail needs. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Claims and the watch run every half second; where the providers limit us, less often, as their requests would take all that is allowed. */
const intervalMs = (pace: number | null): string => (pace === null ? '500' : '2000');

/** The service of one case. */
export async function openStage(world: LyingWorld, { place, pace, isLiarless = false, env: own = {} }: StageOptions) {
  const { network, providers, facilitator } = world;
  const liar = providers[place];
  if (!liar) throw new Error(`no provider has the place ${place}`);
  const latch = latchedEndpoint();
  const dataDir = mkdtempSync(join(tmpdir(), 'percall-liar-'));
  writeFreshLedger(join(dataDir, 'ledger.db'));
  const { WS_URLS: _no, ...embedded } = embeddedEnvironment(network, { channels: true });
  const env = {
    ...embedded,
    ...ENV,
    RPC_URLS: providers.map(({ url }) => url).join(),
    RECONCILE_INTERVAL_MS: intervalMs(pace),
    ...own,
  };
  const start = async (): Promise<Service> => {
    const started = await serviceWith(env, { catalogue: [latch.endpoint], dataDir });
    await untilReady(started);
    return started;
  };
  let service = await start();
  for (const provider of providers) if (isLiarless || provider !== liar) provider.pace(pace);
  const [attacks, honest]: [Presented[], Presented[]] = [[], []];
  const broken: string[] = [];
  const presentedTo = (all: Presented[], order: Order): Presented => {
    const one = presented(order, () => service.origin);
    all.push(one);
    return one;
  };

  return {
    network,
    providers,
    facilitator,
    liar,
    latch,
    seen: world.seen,
    path: latch.path,
    patienceMs: pace === null ? PATIENCE_MS.rest : PATIENCE_MS.limited,
    origin: () => service.origin,
    attack: (order: Order): Presented => presentedTo(attacks, order),
    honest: (order: Order): Presented => presentedTo(honest, order),
    /** Notes that a promise does not hold. */
    breaks: (promise: string): void => void broken.push(promise),
    /** Starts the service anew over the same ledger. */
    restart: async (): Promise<void> => {
      await service.stop();
      service = await start();
    },
    /** The times until honest buyers were served, in milliseconds. */
    times: (): number[] => honest.flatMap(({ servedMs }) => servedMs ?? []),
    judge: async (): Promise<Verdict> => ({ ...(await judge(attacks, honest)), broken }),
    close: async (): Promise<void> => {
      latch.open();
      await network.resumeMining();
      world.honest();
      await service.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type Stage = Awaited<ReturnType<typeof openStage>>;

/**
 * Presentations after a first 402. It does not end a payment that may have moved, but it breaks the promise already.
 */
const AFTER_REFUSAL = 6;

/** Presents until the answer is paid for, or the buyer's patience ends. */
export async function untilServed(stage: Pick<Stage, 'patienceMs'>, one: Presented): Promise<void> {
  await isSoon(stage, async () => [200, 402].includes((await one.present()).status));
  await presentTimes(one, AFTER_REFUSAL);
}

/** Presents so often, while nothing is sold. */
export async function presentTimes(one: Presented, times: number): Promise<void> {
  for (let at = 0; at < times && one.servedMs === null; at++) {
    await one.present();
    await delay(AGAIN_MS);
  }
}

/** Resolves once it is so; false when the patience ends before. */
export async function isSoon(
  { patienceMs }: Pick<Stage, 'patienceMs'>,
  isSo: () => Promise<boolean>,
): Promise<boolean> {
  for (const end = Date.now() + patienceMs; Date.now() < end; await delay(AGAIN_MS)) if (await isSo()) return true;
  return false;
}

/**
 * Presents until a transaction with this payment waits for its block, because a refusal that took no money may come
 * first. Returns the presentation that waits with it.
 */
export async function presentUntilSent(
  { network }: Stage,
  one: Presented,
  terms: Terms,
): Promise<{ readonly waiting: Promise<Answer> }> {
  let isRefused = false;
  const presentOnce = (): Promise<Answer> => {
    const answer = one.present();
    const refused = (): void => {
      isRefused = true;
    };
    void answer.then(() => delay(AGAIN_MS)).then(refused, refused);
    return answer;
  };
  let waiting = presentOnce();
  await until('the payment is sent', async () => {
    if (await isPending(network, `0x${markOf(terms)}`)) return true;
    if (isRefused) {
      isRefused = false;
      waiting = presentOnce();
    }
    return false;
  });
  return { waiting };
}

/** Takes an account's whole USDC away, on the true chain. */
export const drain = ({ network }: Stage, account: Uint8Array): Promise<unknown> =>
  network.rpc('anvil_setStorageAt', [network.usdc, balanceSlot(account), pad('0x00')] satisfies Hex[]);

function presented(order: Order, origin: () => string): Presented {
  const answers: Answer[] = [];
  let firstMs: number | null = null;
  const self: Presented = {
    ...order,
    answers,
    servedMs: null,
    isUnpaid: false,
    present: async () => {
      firstMs ??= performance.now();
      const answer = await present(origin(), order.path, order);
      answers.push(answer);
      if (answer.status !== 200) return answer;
      self.servedMs ??= performance.now() - firstMs;
      if (!(await order.hasMoved())) self.isUnpaid = true;
      return answer;
    },
  };
  return self;
}

async function judge(attacks: readonly Presented[], honest: readonly Presented[]): Promise<Omit<Verdict, 'broken'>> {
  const sold = (one: Presented) => one.answers.some(({ status }) => status === 200);
  const all = await Promise.all([...attacks, ...honest].map(async (one) => ({ one, hasPaid: await one.hasMoved() })));
  const paid = all.filter(({ hasPaid }) => hasPaid).map(({ one }) => one);
  return {
    soldForNothing: all.filter(({ one }) => one.isUnpaid).length,
    lost: paid.filter((one) => !sold(one)).length,
    falseDenials: paid.filter(({ answers }) => answers.some(({ status }) => status === 402)).length,
    unserved: honest.filter((one) => !sold(one)).length,
    said: all.map(({ one, hasPaid }) => `${hasPaid ? 'paid' : 'unpaid'}: ${one.answers.map(summary).join(', ')}`),
  };
}

/** An answer in a few words. */
function summary({ status, headers, body }: Answer): string {
  if (status === 200) return '200';
  const { code, hint } = JSON.parse(body) as { code?: string; hint?: string };
  const asked = headers['payment-required'] ? decoded({ status, headers, body }, 'payment-required').error : null;
  return `${status} ${code ?? asked ?? hint}`;
}
