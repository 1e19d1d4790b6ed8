import { expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../src/embedded/network.ts';
import { MULTICALL3 } from '../../src/payment/settlers/relayer/multicall.ts';
import { type FaultProxy, type ProxiedCall, startFaultProxy } from '../support/chain/fault-proxy.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';
import { presentUntilServed, until, usesOf } from '../support/service/crew.ts';
import { leaderOf, startInstances } from '../support/service/instances.ts';
import {
  expectEvenBooks,
  judgeSale,
  untilAllAreReady,
  untilNothingIsOpen,
} from '../support/service/instances-judge.ts';
import type { Answer } from '../support/service/service.ts';
import { newBuyer, type Payment, present } from '../support/usdc/buyer.ts';

const ROUNDS = Number(process.env.ROUNDS ?? (process.env.SLOW ? 10 : 1));
/** Payments that the pause finds sent, stored and reserved: so many of each. */
const EACH = 4;
const PATH = '/v1/paid/fees/estimate';
/** What was asked before the pause is still worth having after it, so that everything that was under way goes on. */
const PATIENT = { RPC_TIMEOUT_MS: '60000', HANDLER_TIMEOUT_MS: '60000' };

/** Trials of batches, by which the relayer is held; newest blocks, by which the handler of the route is. */
type Held = 'batches' | 'heads';

/** The way to the chain of one instance, on which calls of a kind can be kept waiting. */
function createGate(wire: FaultProxy, relayer: string) {
  let held: readonly Held[] = [];
  let gate = Promise.withResolvers<void>();
  const kindOf = ({ method, params: [asked] }: ProxiedCall): Held | null => {
    const { from, to } = (asked ?? {}) as { from?: string; to?: string };
    if (method === 'eth_getBlockByNumber' && asked === 'latest') return 'heads';
    return method === 'eth_call' && from === relayer && to?.toLowerCase() === MULTICALL3 ? 'batches' : null;
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

/** Two instances over a ledger and a chain of their own. */
async function openStage() {
  const network = await startEmbeddedNetwork();
  const wires = [await startFaultProxy(network.rpcUrl), await startFaultProxy(network.rpcUrl)] as const;
  const ways = wires.map((wire) => createGate(wire, network.relayer.address.toLowerCase()));
  const service = await startInstances(network, await freshDatabase(), 2, PATIENT, (at) => ({
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

/** What is said to be uncharged was not charged; what nobody knew is said to be unknown. */
async function expectTrueWord(network: EmbeddedNetwork, payment: Payment, answer: Answer | null, context: string) {
  if (answer === null || answer.status === 200) return;
  const told = `${answer.status} ${answer.body} ${context}`;
  const { charged } = JSON.parse(answer.body) as { charged: unknown };
  expect([false, 'unknown'], told).toContain(charged);
  if (charged === false) expect(await usesOf(network, payment), told).toBe(0);
}

/**
 * One pause. It finds payments in every state at that instance: sent and not mined, stored and not sent, reserved with the handler to come.
 * Every second buyer comes back to the other instance meanwhile.
 */
async function pauseOnce({ network, ways, service, buyers }: Stage, leads: boolean, context: string): Promise<string> {
  await untilAllAreReady(service);
  await until('one leads', async () => (await leaderOf(service)) >= 0);
  const leader = await leaderOf(service);
  const at = leads ? leader : 1 - leader;
  const [paused, other] = [service.origins[at] as string, service.origins[1 - at] as string];
  const payments = await Promise.all(buyers.map((buyer) => buyer.sign(other, PATH)));
  const answers: Promise<Answer | null>[] = [];
  const begin = async (what: string, where: string): Promise<void> => {
    const some = payments.slice(answers.length, answers.length + EACH);
    answers.push(...some.map((payment) => present(paused, PATH, payment).catch(() => null)));
    await until(what, async () => (await service.ask(`SELECT id FROM usdc_payments WHERE ${where}`)).length === EACH);
  };
  await network.pauseMining();
  await begin('some are sent', "state = 'settling' AND transaction_hash IS NOT NULL");
  ways[leader]?.hold('batches');
  await begin('some are stored', "state = 'settling' AND transaction_hash IS NULL");
  ways[at]?.hold('heads');
  await begin('some are reserved', "state = 'reserved'");
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
    expect(await leaderOf({ origins: [other] }), context).toBe(0);
    await network.resumeMining();
    // What it asked the chain is answered while it cannot hear it.
    for (const way of ways) way.letGo();
    const early = payments.map((payment, of) => (of % 2 === 0 ? presentUntilServed(other, PATH, payment) : null));
    const served = await Promise.all(early);
    process.kill(pid, 'SIGCONT');
    const heard = await Promise.all(answers);
    const story = `${context}: ${JSON.stringify(heard.map((answer) => answer && [answer.status, answer.body]))}`;
    for (const [of, payment] of payments.entries()) {
      await expectTrueWord(network, payment, heard[of] ?? null, story);
      const sale = { path: PATH, payment, heard: served[of] ?? heard[of] ?? null };
      await judgeSale(network, service.origin, sale, story);
      if (served[of] && heard[of]?.status === 200) expect(heard[of]?.body, story).toBe(served[of]?.body);
    }
    await untilNothingIsOpen(service);
    await expectEvenBooks(network, service, story);
    return heard.map((answer) => answer?.status ?? 'broken').join(' ');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

/** The one that was paused lives, is known to, and sells. */
async function expectRevived({ network, service, buyers }: Stage, pids: readonly number[]): Promise<void> {
  await untilAllAreReady(service);
  await until('both live, and one leads', async () => {
    const living = await service.ask('SELECT boot_id FROM instances WHERE seen_at > 0');
    return living.length === 2 && (await leaderOf(service)) >= 0;
  });
  expect(service.instances.map((instance) => instance.pid())).toEqual(pids);
  for (const origin of service.origins) {
    const payment = await (buyers[0] as Stage['buyers'][number]).sign(origin, PATH);
    expect((await present(origin, PATH, payment)).status).toBe(200);
    expect(await usesOf(network, payment)).toBe(1);
  }
  await expectEvenBooks(network, service, 'after the pause');
}

describePostgres('an instance that was paused until it was declared dead, and goes on', () => {
  // Waiting is most of it: both at once, each over a ledger of its own.
  test.concurrent.each([
    ['that leads', true],
    ['that does not lead', false],
  ])(
    `%s, ${ROUNDS} times: nobody is charged twice, nobody has paid and is not served, and it goes on to sell`,
    async (who, leads) => {
      const stage = await openStage();
      try {
        const pids = stage.service.instances.map((instance) => instance.pid());
        for (let round = 0; round < ROUNDS; round++) {
          const told = await pauseOnce(stage, leads, `one ${who}, round ${round}`);
          process.stdout.write(`one ${who} was paused, round ${round}: ${told}\n`);
          await expectRevived(stage, pids);
        }
      } finally {
        await stage.stop();
      }
    },
    60_000 + ROUNDS * 90_000,
  );
});
