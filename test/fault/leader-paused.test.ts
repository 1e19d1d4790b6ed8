import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { MULTICALL3 } from '../../src/payment/usdc/token.ts';
import { type FaultProxy, type ProxiedCall, startFaultProxy } from '../support/chain/fault-proxy.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';
import { type Instances, leaderOf, startInstances, untilOneLeads } from '../support/service/instances.ts';
import {
  checkSale,
  expectBalancedLedger,
  untilAllAreReady,
  untilNothingIsOpen,
} from '../support/service/instances-checks.ts';
import { metricOf } from '../support/service/metric.ts';
import { until } from '../support/service/workers.ts';
import { newBuyer, present } from '../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
/**
 * Buyers wait for the new leader on a slow machine too. The call that the test holds must not time out before all payments are stored: without the chain the
 * leader would refuse those that it has not stored yet.
 */
const env = { SETTLE_WAIT_MS: '90000', RPC_TIMEOUT_MS: '60000' };

/** How often buyers pay until all of them wait. Beside four busy programs one was answered too early in one run of nineteen. */
const TRIES = 10;

describePostgres('the leader is paused', () => {
  let network: EmbeddedNetwork;
  let chains: FaultProxy[];
  let service: Instances;
  beforeAll(async () => {
    network = await startEmbeddedNetwork();
    // Whichever instance leads reaches the chain through a proxy of the test.
    chains = [await startFaultProxy(network.rpcUrl), await startFaultProxy(network.rpcUrl)];
    const own = (at: number) => ({ RPC_URLS: chains[at]?.url ?? '' });
    service = await startInstances(network, await freshDatabase(), chains.length, env, own);
  });
  afterEach(() => {
    for (const chain of chains) chain.play({});
  });
  afterAll(async () => {
    await service?.stop();
    for (const chain of chains ?? []) await chain.stop();
    await network?.stop();
  });

  const countOf = async (...states: ('settling' | 'unknown' | 'settled')[]): Promise<number> => {
    const text = 'SELECT count(*)::int AS n FROM usdc_payments WHERE state = ANY($1)';
    return (await service.ask<{ n: number }>(text, [states]))[0]?.n ?? 0;
  };

  /** The payments that this instance knows to have stored since its start. */
  const storedMoves = async (origin: string): Promise<number> =>
    (await metricOf(origin, 'payment_moves_total{rail="usdc",state="settling"}')) ?? Number.NaN;

  /**
   * Buyers pay at both instances. The leader is paused before its relayer makes the call of this kind, and resumed after the other instance has settled
   * everything. False when a buyer was answered before that.
   */
  async function payWhilePaused(count: number, pausesAt: (call: ProxiedCall) => boolean) {
    await untilAllAreReady(service);
    const leading = await untilOneLeads(service);
    const following = 1 - leading;
    const sold = await countOf('settled');
    const [first, second] = [service.origins[leading] as string, service.origins[following] as string];
    const leaderPid = service.instances[leading]?.pid() ?? 0;
    const buyers = await Promise.all(Array.from({ length: count }, () => newBuyer(network)));
    const payments = await Promise.all(buyers.map((buyer) => buyer.sign(second, PATH)));

    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    const { promise: leaderPaused, resolve: markPaused, reject: giveUp } = Promise.withResolvers<boolean>();
    let [sleeps, sent] = [false, 0];
    let stored: Promise<void> | null = null;
    const storedBefore = await storedMoves(first);
    /**
     * A stored payment is `settling`. On a busy machine it can be `unknown` before it is sent. The leader has to know it of its own buyers' payments, too: when a
     * pause is longer than 11 s, it sees the time-out of a write before it reads the answer that came meanwhile, and tells the buyer that the outcome is unknown.
     */
    const allStored = () =>
      (stored ??= until('all are stored', async () => {
        // A buyer who was refused has stored nothing.
        if (answered.size > 0) return true;
        const isKnown = (await storedMoves(first)) - storedBefore >= Math.floor(count / 2);
        return isKnown && (await countOf('settling', 'unknown')) === count;
      }));
    const relayer = network.relayer.address.toLowerCase();
    const answered = new Map<number, unknown>();
    /** What came when, for the error of a buyer who was not served. */
    const times: [what: number | string, atMs: number][] = [];
    const mark = (what: number | string) => times.push([what, Date.now()]);
    /** What has become of the payments, for the error of a wait for them. */
    const standing = async (held: ProxiedCall): Promise<string> => {
      const states = await service.ask('SELECT state, count(*)::int AS n FROM usdc_payments GROUP BY state');
      return JSON.stringify({
        held,
        states,
        answered: [...answered.values()],
        leads: await leaderOf(service),
        leading,
      });
    };
    const isSent = ({ method, params: [asked] }: ProxiedCall) =>
      method === 'eth_sendRawTransaction' || (asked as { from?: string } | undefined)?.from === relayer;
    chains[leading]?.play({
      before: async (call) => {
        if (!isSent(call)) return;
        // Held until then, a payment that comes ahead of the others leaves them one batch. Payments that are still being checked would wait for the paused
        // instance.
        try {
          await allStored();
        } catch (error) {
          // A leader that is paused now would not be woken, and could not be ended.
          return giveUp(new Error(await standing(call).catch(String), { cause: error }));
        }
        if (call.method === 'eth_sendRawTransaction') sent += 1;
        if (sleeps || answered.size > 0 || !pausesAt(call)) return;
        sleeps = true;
        process.kill(leaderPid, 'SIGSTOP');
        mark('paused');
        markPaused(true);
        await woken;
      },
    });
    // A payment that arrives ahead of the others is sent alone. Without blocks it is not settled before the others are stored.
    await network.pauseMining();
    onTestFinished(() => network.resumeMining());
    const answers = payments.map(async (payment, at) => {
      const answer = await present(at % 2 ? first : second, PATH, payment).catch(String);
      mark(at);
      answered.set(at, typeof answer === 'string' ? answer : [answer.status, answer.body]);
      markPaused(false);
      return typeof answer === 'string' ? null : answer;
    });
    const isPaused = await leaderPaused;
    await network.resumeMining();
    const sentBefore = sent;
    let allWait = false;
    if (isPaused) {
      // Then the paused instance's lease has run out.
      await until(
        'the other one leads',
        async () => JSON.parse(await (await fetch(`${second}/readyz`)).text()).checks.instances.leads === true,
      );
      // A refusal that came by then may have been under way at the pause.
      allWait = [...answered.values()].every((answer) => Array.isArray(answer) && answer[0] === 200);
      // Resumed earlier, the instance would answer its waiting buyers that the outcome is unknown. That is correct, but no answer.
      await until('it has settled what it found', async () => (await countOf('settled')) === sold + count);
      wake();
      mark('resumed');
      process.kill(leaderPid, 'SIGCONT');
    }

    const received = await Promise.all(answers);
    const context = JSON.stringify(received.map((answer) => answer && [answer.status, answer.body]));
    await untilAllAreReady(service);
    await Promise.all(
      payments.map((payment, at) =>
        checkSale(network, service.origin, { path: PATH, payment, received: received[at] ?? null }, context),
      ),
    );
    await untilNothingIsOpen(service);
    await expectBalancedLedger(network, service, context);
    if (isPaused) {
      expect(sent - sentBefore, context).toBe(0);
      await expect.poll(() => leaderOf(service), { message: context }).toBe(following);
    }
    if (!allWait) return false;
    // Buyers who waited at either instance were served without presenting again: the new leader settled the payments that it found.
    const logs = service.instances.map((instance) => instance.log().slice(-5000)).join('\n');
    expect(
      received.map((answer) => answer?.status),
      `${context}\n${JSON.stringify(times)}\n${logs}`,
    ).toEqual(payments.map(() => 200));
    return true;
  }

  /** Again with new payments until no buyer is answered before the pause, which happens on a busy machine. */
  async function allWaitWhilePaused(count: number, pausesAt: (call: ProxiedCall) => boolean) {
    for (let tries = 1; !(await payWhilePaused(count, pausesAt)); tries += 1) expect(tries).toBeLessThan(TRIES);
  }

  test('in the middle of a batch, then resumed under another leader: it sends nothing, and no payment is charged twice', async () => {
    // The batch is simulated and not yet stored. From here one statement and one call complete it.
    await allWaitWhilePaused(6, ({ method, params: [asked] }) => {
      const { to } = (asked ?? {}) as { to?: string };
      return method === 'eth_call' && to?.toLowerCase() === MULTICALL3;
    });
  });

  test('with a transaction noted and never sent: the new leader serves the buyer who waits at it', async () => {
    await allWaitWhilePaused(1, ({ method }) => method === 'eth_sendRawTransaction');
  });
});
