import { afterEach, beforeEach, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../src/embedded/network.ts';
import { MULTICALL3 } from '../../src/payment/settlers/relayer/multicall.ts';
import { type FaultProxy, type ProxiedCall, startFaultProxy } from '../support/chain/fault-proxy.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';
import { until } from '../support/service/crew.ts';
import { type Instances, leaderOf, startInstances } from '../support/service/instances.ts';
import {
  expectEvenBooks,
  judgeSale,
  untilAllAreReady,
  untilNothingIsOpen,
} from '../support/service/instances-judge.ts';
import { newBuyer, present } from '../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
/** Longer than the lease, shorter than what makes an instance dead. */
const ASLEEP_MS = 10_000;
/** Buyers wait for the one that takes over, however slow the machine is. */
const env = { SETTLE_WAIT_MS: '90000' };

describePostgres('the instance that leads falls asleep', () => {
  let network: EmbeddedNetwork;
  let chain: FaultProxy;
  let service: Instances;
  beforeEach(async () => {
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
  afterEach(async () => {
    chain?.play({});
    await service?.stop();
    await chain?.stop();
    await network?.stop();
  });

  const countOf = async (state: 'settling' | 'settled'): Promise<number> =>
    (await service.ask<{ n: number }>(`SELECT count(*)::int AS n FROM usdc_payments WHERE state = '${state}'`))[0]?.n ??
    0;

  /** Pays at both, lets the one that leads sleep before it makes the call of this kind, and wakes it when the other one has settled all. */
  async function payWhileItSleeps(count: number, fallsAsleepAt: (call: ProxiedCall) => boolean) {
    await untilAllAreReady(service);
    expect(await leaderOf(service)).toBe(0);
    const [first, second] = service.origins as [string, string];
    const sleeper = service.instances[0]?.pid() ?? 0;
    const buyers = await Promise.all(Array.from({ length: count }, () => newBuyer(network)));
    const payments = await Promise.all(buyers.map((buyer) => buyer.sign(second, PATH)));

    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    const { promise: asleep, resolve: fallAsleep } = Promise.withResolvers<void>();
    let [sleeps, sent] = [false, 0];
    chain.play({
      before: async (call) => {
        if (call.method === 'eth_sendRawTransaction') sent += 1;
        if (sleeps || !fallsAsleepAt(call)) return;
        sleeps = true;
        // Those that are still on their way would wait for the sleeper.
        await until('all are stored', async () => (await countOf('settling')) === count);
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
    await until('it has settled what it found', async () => (await countOf('settled')) === count);
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
  }

  test('in the middle of a batch, and wakes when another one leads: it sends nothing, and nobody is charged twice', async () => {
    const relayer = network.relayer.address.toLowerCase();
    // The batch is tried out, and not yet written down: from here it is one statement and one call to its end.
    await payWhileItSleeps(6, ({ method, params: [asked] }) => {
      const { from, to } = (asked ?? {}) as { from?: string; to?: string };
      return method === 'eth_call' && from === relayer && to?.toLowerCase() === MULTICALL3;
    });
  }, 120_000);

  test('with a transaction noted and never sent: the buyer who waits at the next leader is served by it', async () => {
    await payWhileItSleeps(1, ({ method }) => method === 'eth_sendRawTransaction');
  }, 120_000);
});
