import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../scripts/embedded/network.ts';
import { MULTICALL3 } from '../../src/payment/usdc/multicall.ts';
import { newBuyer, present } from '../support/buyer.ts';
import { until } from '../support/crew.ts';
import { type FaultProxy, type ProxiedCall, startFaultProxy } from '../support/fault-proxy.ts';
import { type Instances, leaderOf, startInstances } from '../support/instances.ts';
import { expectEvenBooks, judgeSale, untilAllAreReady, untilNothingIsOpen } from '../support/instances-judge.ts';
import { describePostgres } from '../support/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres-run.ts';

const PAYMENTS = 6;
const PATH = '/v1/paid/fees/estimate';
/** Longer than the lease, shorter than what makes an instance dead. */
const ASLEEP_MS = 10_000;
/** Buyers wait for the one that takes over, however slow the machine is. */
const env = { SETTLE_WAIT_MS: '90000' };

describePostgres('the instance that leads falls asleep in the middle of a batch', () => {
  let network: EmbeddedNetwork;
  let chain: FaultProxy;
  let service: Instances;
  beforeAll(async () => {
    network = await startEmbeddedNetwork();
    chain = await startFaultProxy(network.rpcUrl);
    // The one that leads asks the chain through a wire that the test sees.
    service = await startInstances(
      network,
      await freshDatabase(),
      2,
      env,
      (at): Record<string, string> => (at === 0 ? { RPC_URLS: chain.url } : {}),
    );
  }, 120_000);
  afterAll(async () => {
    chain?.play({});
    await service?.stop();
    await chain?.stop();
    await network?.stop();
  });

  test('and wakes when another one leads: it sends nothing, and nobody is charged twice', async () => {
    await untilAllAreReady(service);
    expect(await leaderOf(service)).toBe(0);
    const [first, second] = service.origins as [string, string];
    const sleeper = service.instances[0]?.pid() ?? 0;
    const buyers = await Promise.all(Array.from({ length: PAYMENTS }, () => newBuyer(network)));
    const payments = await Promise.all(buyers.map((buyer) => buyer.sign(second, PATH)));

    const relayer = network.relayer.address.toLowerCase();
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    const { promise: asleep, resolve: fallAsleep } = Promise.withResolvers<void>();
    const stored = "SELECT count(*)::int AS n FROM usdc_payments WHERE state = 'settling'";
    let [sleeps, sent] = [false, 0];
    const isTrial = ({ method, params: [asked] }: ProxiedCall) => {
      const { from, to } = (asked ?? {}) as { from?: string; to?: string };
      return method === 'eth_call' && from === relayer && to?.toLowerCase() === MULTICALL3;
    };
    chain.play({
      // The batch is tried out, and not yet written down: from here it is one statement and one call to its end.
      before: async (call) => {
        if (call.method === 'eth_sendRawTransaction') sent += 1;
        if (sleeps || !isTrial(call)) return;
        sleeps = true;
        // Those that are still on their way would wait for the sleeper.
        await until('all are stored', async () => (await service.ask<{ n: number }>(stored))[0]?.n === PAYMENTS);
        process.kill(sleeper, 'SIGSTOP');
        fallAsleep();
        await woken;
      },
    });
    const answers = payments.map((payment, at) => present(at % 2 ? first : second, PATH, payment).catch(() => null));
    await asleep;
    const before = sent;
    await new Promise((over) => setTimeout(over, ASLEEP_MS));
    await until(
      'the other one leads',
      async () => JSON.parse(await (await fetch(`${second}/readyz`)).text()).checks.instances.leads === true,
    );
    // Woken before that, it tells who waits that it cannot say: true, and no answer yet.
    const settled = "SELECT count(*)::int AS n FROM usdc_payments WHERE state = 'settled'";
    await until(
      'it has settled what it found',
      async () => (await service.ask<{ n: number }>(settled))[0]?.n === PAYMENTS,
    );
    wake();
    process.kill(sleeper, 'SIGCONT');

    const heard = await Promise.all(answers);
    const context = JSON.stringify(heard.map((answer) => answer && [answer.status, answer.body]));
    await untilAllAreReady(service);
    await Promise.all(
      payments.map((payment, at) =>
        judgeSale(network, service.origin, { path: PATH, payment, heard: heard[at] ?? null }, context),
      ),
    );
    expect(sent - before, context).toBe(0);
    expect(await leaderOf(service)).toBe(1);
    await untilNothingIsOpen(service);
    await expectEvenBooks(network, service, context);
    // Those that waited at either were served without coming again: the other one has settled what it found.
    expect(
      heard.map((answer) => answer?.status),
      context,
    ).toEqual(payments.map(() => 200));
  }, 120_000);
});
