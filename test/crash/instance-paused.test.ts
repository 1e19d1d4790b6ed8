import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { type FaultProxy, type ProxiedCall, startFaultProxy } from '../support/chain/fault-proxy.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';
import { leaderOf, startInstances, untilOneLeads } from '../support/service/instances.ts';
import {
  checkSale,
  expectBalancedLedger,
  untilAllAreReady,
  untilNothingIsOpen,
} from '../support/service/instances-checks.ts';
import type { Answer } from '../support/service/service.ts';
import { presentUntilServed, until, usesOf } from '../support/service/workers.ts';
import { newBuyer, type Payment, present } from '../support/usdc/buyer.ts';

const ROUNDS = Number(process.env.ROUNDS ?? (process.env.SLOW ? 10 : 1));
/** Payments of each kind at the moment of the pause: sent, stored and reserved. */
const EACH = 4;
const PATH = '/v1/paid/fees/estimate';
/** Long time-outs, so that a request from before the pause is still answered after it, and everything that was under way continues. */
const LONG_TIMEOUTS = { RPC_TIMEOUT_MS: '60000', HANDLER_TIMEOUT_MS: '60000' };

/** Which calls are held: simulations of settlements, which hold the relayer, or the newest block, which holds the route's handler. */
type Held = 'simulations' | 'heads';

/** One instance's connection to the chain. It can hold calls of a kind. */
function createGate(wire: FaultProxy, relayer: string) {
  let held: readonly Held[] = [];
  let gate = Promise.withResolvers<void>();
  const kindOf = ({ method, params: [asked] }: ProxiedCall): Held | null => {
    const { from } = (asked ?? {}) as { from?: string };
    if (method === 'eth_getBlockByNumber' && asked === 'latest') return 'heads';
    return method === 'eth_call' && from === relayer ? 'simulations' : null;
  };
  wire.play({
    before: async (call) => {
      const kind = kindOf(call);
      if (kind !== null && held.includes(kind)) await gate.promise;
    },
  });
  return {
    hold: (kind: Held): void => {
      held = [...held, kind];
    },
    letGo: (): void => {
      held = [];
      gate.resolve();
      gate = Promise.withResolvers();
    },
    stop: wire.stop,
  };
}

/** Two instances over one ledger and one chain. */
async function openStage() {
  const network = await startEmbeddedNetwork();
  const wires = [await startFaultProxy(network.rpcUrl), await startFaultProxy(network.rpcUrl)] as const;
  const ways = wires.map((wire) => createGate(wire, network.relayer.address.toLowerCase()));
  const service = await startInstances(network, await freshDatabase(), 2, LONG_TIMEOUTS, (at) => ({
    RPC_URLS: wires[at as 0 | 1].url,
  }));
  const buyers = await Promise.all(Array.from({ length: 3 * EACH }, () => newBuyer(network, 50_000_000n)));
  const stop = async (): Promise<void> => {
    for (const way of ways) way.letGo();
    await service.stop();
    for (const way of ways) await way.stop();
    await network.stop();
  };
  return { network, ways, service, buyers, stop };
}

type Stage = Awaited<ReturnType<typeof openStage>>;

/** A payment that was reported as uncharged was not charged. An unknown outcome was reported as unknown. */
async function expectTruthfulAnswer(
  network: EmbeddedNetwork,
  payment: Payment,
  answer: Answer | null,
  context: string,
) {
  if (answer === null || answer.status === 200) return;
  const summary = `${answer.status} ${answer.body} ${context}`;
  const { charged } = JSON.parse(answer.body) as { charged: unknown };
  expect([false, 'unknown'], summary).toContain(charged);
  if (charged === false) expect(await usesOf(network, payment), summary).toBe(0);
}

/** Payments in every state at one instance, and their answers to come. */
interface Open {
  /** The instance. */
  readonly at: number;
  readonly payments: readonly Payment[];
  readonly answers: readonly Promise<Answer | null>[];
}

/**
 * Presents payments to one instance until they are in every state: sent and not mined, stored and not sent, reserved with the handler to run. Null when
 * the service refused one. It sells no more once a payment has been open for SETTLE_WAIT_MS (20 s), and on a busy machine that comes too early.
 */
async function presentInEveryState({ network, ways, service, buyers }: Stage, leads: boolean): Promise<Open | null> {
  await untilAllAreReady(service);
  const leader = await untilOneLeads(service);
  const at = leads ? leader : 1 - leader;
  const paused = service.origins[at] as string;
  const payments = await Promise.all(buyers.map((buyer) => buyer.sign(service.origins[1 - at] as string, PATH)));
  const answers: Promise<Answer | null>[] = [];
  let isRefused = false;
  const ask = async (payment: Payment): Promise<Answer | null> => {
    const answer = await present(paused, PATH, payment).catch(() => null);
    if (answer?.status === 503) isRefused = true;
    return answer;
  };
  const begin = async (what: string, where: string): Promise<void> => {
    if (isRefused) return;
    answers.push(...payments.slice(answers.length, answers.length + EACH).map(ask));
    const rows = () => service.ask(`SELECT id FROM usdc_payments WHERE ${where}`);
    await until(what, async () => isRefused || (await rows()).length === EACH);
  };
  await network.pauseMining();
  await begin('some are sent', "state = 'settling' AND transaction_hash IS NOT NULL");
  ways[leader]?.hold('simulations');
  await begin('some are stored', "state = 'settling' AND transaction_hash IS NULL");
  ways[at]?.hold('heads');
  await begin('some are reserved', "state = 'reserved'");
  if (!isRefused) return { at, payments, answers };
  await network.resumeMining();
  for (const way of ways) way.letGo();
  await Promise.all(answers);
  await untilNothingIsOpen(service);
  return null;
}

/** How often payments are brought into every state before the test gives up. */
const MOST_TRIES = 10;

async function openPayments(stage: Stage, leads: boolean): Promise<Open> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const open = await presentInEveryState(stage, leads);
    if (open) return open;
  }
  throw new Error(`of ${MOST_TRIES} tries none had payments in every state`);
}

/** Pauses one instance while its payments are in every state. Every second buyer presents the payment again to the other instance meanwhile. */
async function pauseOnce(stage: Stage, leads: boolean, context: string): Promise<string> {
  const { network, ways, service } = stage;
  const { at, payments, answers } = await openPayments(stage, leads);
  const other = service.origins[1 - at] as string;
  const pid = service.instances[at]?.pid() ?? 0;
  const [{ boot } = { boot: '' }] = await service.ask<{ boot: string }>(
    "SELECT DISTINCT boot_id AS boot FROM usdc_payments WHERE state = 'reserved'",
  );
  process.kill(pid, 'SIGSTOP');
  try {
    await until('it was declared dead, and what it had open was taken over', async () => {
      const known = 'SELECT boot_id FROM instances WHERE boot_id = $1';
      const open = "SELECT id FROM usdc_payments WHERE boot_id = $1 AND state NOT IN ('settled', 'failed')";
      return (await service.ask(`${known} UNION ALL ${open}`, [boot])).length === 0;
    });
    await expect.poll(() => leaderOf({ origins: [other] }), { message: context }).toBe(0);
    await network.resumeMining();
    // The chain answers the held calls while the paused instance cannot receive.
    for (const way of ways) way.letGo();
    const early = payments.map((payment, of) => (of % 2 === 0 ? presentUntilServed(other, PATH, payment) : null));
    const served = await Promise.all(early);
    process.kill(pid, 'SIGCONT');
    const received = await Promise.all(answers);
    const story = `${context}: ${JSON.stringify(received.map((answer) => answer && [answer.status, answer.body]))}`;
    for (const [of, payment] of payments.entries()) {
      await expectTruthfulAnswer(network, payment, received[of] ?? null, story);
      const sale = { path: PATH, payment, received: served[of] ?? received[of] ?? null };
      await checkSale(network, service.origin, sale, story);
      if (served[of] && received[of]?.status === 200) expect(received[of]?.body, story).toBe(served[of]?.body);
    }
    await untilNothingIsOpen(service);
    await expectBalancedLedger(network, service, story);
    return received.map((answer) => answer?.status ?? 'broken').join(' ');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

/** The paused instance is alive again, the others know it, and it sells. */
async function expectRunning({ network, service, buyers }: Stage, pids: readonly number[]): Promise<void> {
  await untilAllAreReady(service);
  await until('both live, and one leads', async () => {
    const living = await service.ask('SELECT boot_id FROM instances WHERE seen_at > 0');
    return living.length === 2 && (await leaderOf(service)) >= 0;
  });
  expect(service.instances.map((instance) => instance.pid())).toEqual(pids);
  for (const origin of service.origins) {
    const payment = await (buyers[0] as Stage['buyers'][number]).sign(origin, PATH);
    await presentUntilServed(origin, PATH, payment);
    expect(await usesOf(network, payment)).toBe(1);
  }
  await expectBalancedLedger(network, service, 'after the pause');
}

describePostgres('an instance that was paused until it was declared dead, and goes on', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage();
  });
  afterAll(() => stage?.stop());

  test.each([
    ['that leads', true],
    ['that does not lead', false],
  ])(
    `%s, ${ROUNDS} times: no payment is charged twice, every charged payment is answered, and the paused instance sells again`,
    async (role, leads) => {
      const pids = stage.service.instances.map((instance) => instance.pid());
      for (let round = 0; round < ROUNDS; round++) {
        const summary = await pauseOnce(stage, leads, `one ${role}, round ${round}`);
        process.stdout.write(`one ${role} was paused, round ${round}: ${summary}\n`);
        await expectRunning(stage, pids);
      }
    },
    300_000 + ROUNDS * 90_000,
  );
});
