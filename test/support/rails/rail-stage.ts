import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import type { FoundPayment } from '../../../src/payment/receipt.ts';
import { createProcess } from '../service/process.ts';
import { programFile } from '../service/programs.ts';
import { type Answer, call } from '../service/service.ts';
import { decoded } from '../usdc/buyer.ts';
import type { Hanging, RailFixture, RailPayment, RailUnderTest, Receipt, Wrong } from './rail-fixture.ts';
import { type PRICES, startSource } from './source.ts';

const TIMEOUT_MS = 120_000;
/**
 * Short times, so that a stopped settlement becomes unknown soon. A sale on a machine that is not slow takes less. A rail's other parties are in the
 * test's process, whose pause must fail no presentation. So their time-outs stay long.
 */
const PACE = { SETTLE_WAIT_MS: '1500', RECONCILE_INTERVAL_MS: '200', RECEIPT_POLL_MS: '50' };
/** What only some rails turn on. */
const DEFAULTS = { LIGHTNING_RECEIVER: 'none', COLLECTOR: 'off', LOG_LEVEL: 'debug' };

/** A request that no other test makes. */
export interface Request {
  readonly tag: string;
  readonly path: string;
}

export type Shop = Awaited<ReturnType<typeof openShop>>;
export type Stage = Shop['stages'][number];

/**
 * The process that sells over these rails, and for each rail a stage with buyers. The rails share the process, as they do at a seller, so one start and one
 * kill are for all of them. Everything that the process answers and logs is kept.
 */
export async function openShop(
  fixtures: readonly RailFixture[],
  network: EmbeddedNetwork,
  ledgerEnv: Record<string, string>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'percall-rail-'));
  const source = await startSource();
  const rails = await Promise.all(fixtures.map(({ open }) => open(network)));
  const env = { ...PACE, ...DEFAULTS, ...ledgerEnv, ...together(rails), SOURCE_URL: source.url };
  const shop = await createProcess(network, folder, env, { program: programFile('service-shop') });
  let requests = 0;
  let hanging: Hanging[] = [];
  let up: Promise<void> | null = null;
  /** Starts a process, unless one is running or starting. */
  const start = (): Promise<void> => {
    up ??= shop.start();
    return up;
  };

  function stageOf(fixture: RailFixture, rail: RailUnderTest) {
    const answers: string[] = [];
    return {
      fixture,
      rail,
      source,
      ...buyersAt(shop.origin, fixture, rail, answers),
      /** Stops all settlements until the test calls `heal` or ends. */
      hang: async (): Promise<Hanging> => {
        const stopped = await rail.hang();
        hanging.push(stopped);
        return stopped;
      },
      /** A new request for one of the two endpoints. */
      request: (endpoint: keyof typeof PRICES = 'cheap'): Request => {
        const tag = `r${++requests}`;
        return { tag, path: `/v1/${fixture.surface}/test/${endpoint}?tag=${tag}` };
      },
      /** All answers to this rail's buyers and all log lines so far. */
      said: () => ({ answers: answers.join('\n'), log: shop.log() }),
    };
  }

  return {
    start,
    stages: fixtures.map((fixture, at) => stageOf(fixture, rails[at] as RailUnderTest)),
    /** Kills the process with SIGKILL. `start` starts the next one over the same data. */
    kill: async (): Promise<void> => {
      up = null;
      await shop.kill();
    },
    /** Restores the shop after a failed test. */
    calm: async (): Promise<void> => {
      source.releaseAll();
      await Promise.all(hanging.map(({ heal }) => heal()));
      hanging = [];
      await start();
    },
    close: async (): Promise<void> => {
      await shop.stop();
      await source.stop();
      await Promise.all(rails.map((rail) => rail.close()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The environment of a service that sells over all these rails. Throws where two rails want different values of one key. */
function together(rails: readonly RailUnderTest[]): Record<string, string> {
  const all: Record<string, string> = {};
  for (const [key, value] of rails.flatMap(({ env }) => Object.entries(env))) {
    all[key] ??= value;
    if (all[key] !== value) throw new Error(`two rails of one process want a ${key} of their own`);
  }
  return all;
}

/** Buyers at a shop. They keep every answer. */
function buyersAt(origin: string, fixture: RailFixture, rail: RailUnderTest, answers: string[]) {
  const paid: RailPayment[] = [];

  async function ask(path: string, headers: Record<string, string> = {}, from?: string): Promise<Answer> {
    const answer = await call(origin, path, { headers, ...(from && { from }) });
    answers.push(`${answer.status} ${JSON.stringify(answer.headers)} ${answer.body}`);
    return answer;
  }

  /** Asks until the answer has the wanted status. Throws for a status outside `comesBackFor`, and after TIMEOUT_MS. */
  async function until(wanted: number, comesBackFor: readonly number[], again: () => Promise<Answer>): Promise<Answer> {
    for (const end = Date.now() + TIMEOUT_MS; ; await delay(50)) {
      const { status, ...answer } = await again();
      if (status === wanted) return { status, ...answer };
      if (!comesBackFor.includes(status) || Date.now() > end)
        throw new Error(`not ${wanted}, but ${status} ${JSON.stringify(answer)}`);
    }
  }

  /** The status of an unpaid call. 503, as a service that is not ready answers, while the rail is not offered. */
  const askUntilOffered = async (path: string): Promise<Answer> => {
    const answer = await ask(path);
    return answer.status === 402 && fixture.isOffered?.(answer) === false ? { ...answer, status: 503 } : answer;
  };
  const offer = ({ path }: Request): Promise<Answer> => until(402, [503], () => askUntilOffered(path));
  const present = ({ path }: Request, { header }: Pick<RailPayment, 'header'>, from?: string): Promise<Answer> =>
    ask(path, { 'payment-signature': header }, from);

  return {
    ask,
    /** The id by which the payment of a receipt is looked up. */
    idIn: (receipt: Receipt): string => rail.idIn?.(receipt) ?? String(receipt.transaction),
    /** Asks without a payment, until the answer is an offer. */
    offer,
    /** Presents a payment once, from another address where one is given. */
    present,
    /** Presents a payment, and again while the service says that it cannot sell now and has charged nothing. */
    presentUntilTaken: async (request: Request, payment: Pick<RailPayment, 'header'>): Promise<Answer> => {
      for (const end = Date.now() + TIMEOUT_MS; ; await delay(50)) {
        const answer = await present(request, payment);
        if (answer.status !== 503 || JSON.parse(answer.body).charged !== false || Date.now() > end) return answer;
      }
    },
    /** Pays for a request and presents nothing yet. */
    pay: async (request: Request, wrong?: Wrong): Promise<RailPayment> => {
      const payment = await rail.pay(await offer(request), wrong);
      paid.push(payment);
      return payment;
    },
    /** Every payment so far. */
    paid: () => paid,
    /** Presents a payment until it is served. */
    buy: (request: Request, payment: Pick<RailPayment, 'header'>): Promise<Answer> =>
      until(200, [409, 502, 503], () => present(request, payment)),
    /** Looks up an identifier; null where the ledger has no such payment. */
    find: async (id: string): Promise<FoundPayment | null> => {
      const { status, body } = await ask(`/v1/payments/${id}`);
      return status === 404 ? null : (JSON.parse(body).payments[0] as FoundPayment);
    },
  };
}

/** The receipt of an answer. */
export const receiptOf = (answer: Answer): Receipt => decoded(answer, 'payment-response');

/** The members of a problem that concern money. */
export const problemOf = ({ status, body }: Answer): object => {
  const { code, charged } = JSON.parse(body);
  return { status, code, charged };
};
