import { afterAll, beforeAll, describe, expect, type SuiteOptions, test, vi } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { describePostgres } from '../../support/ledger/ledger-adapters.ts';
import { payFor, presentProof } from '../../support/lightning/lightning-buyer.ts';
import { proofNow, settleOver } from '../../support/lightning/settle-calls.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../../support/postgres/database-proxy.ts';
import { freshDatabase } from '../../support/postgres/postgres-run.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Answer, call, type Service, startService } from '../../support/service/service.ts';
import { presentUntilServed, until, untilReady, usesOf } from '../../support/service/workers.ts';
import { SLACK_MS } from '../../support/slack.ts';
import { newBuyer, type Payment, present, transfersOf } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/test/moody';
/** Short, so that a silent connection is noticed soon. Readiness has its own time-out. */
const TIMES = { LEDGER_STATEMENT_TIMEOUT_MS: '300', LEDGER_CONNECT_TIMEOUT_MS: '600' };
/** A load balancer waits this long for /readyz. */
const READY_WITHIN_MS = 3000;
/** Free routes that do not depend on the ledger. */
const FREE = ['/livez', '/v1/paid', '/openapi.json', '/facilitator/supported', '/.well-known/x402', '/metrics', '/'];

/** The last test ends the outage that the others meet. */
const ONE_OUTAGE: SuiteOptions = { shuffle: false };

const moody = moodyEndpoint();
const problem = ({ status, body }: Answer) => {
  const { code, charged } = JSON.parse(body) as { code: string; charged: unknown };
  return [status, code, charged];
};

describePostgres('while the ledger is away', () => {
  let network: EmbeddedNetwork;
  let proxy: DatabaseProxy;
  let service: Service;
  beforeAll(async () => {
    network = await startEmbeddedNetwork({ lightning: true });
    proxy = await startDatabaseProxy(await freshDatabase());
    service = await startService(network, {
      catalogue: [moody.endpoint],
      env: {
        LEDGER_URL: proxy.url,
        COLLECTOR: 'off',
        RECONCILE_INTERVAL_MS: '300',
        ...TIMES,
        LIGHTNING_INVOICES_PER_MINUTE: '1000',
        LIGHTNING_INVOICES_TOTAL_PER_MINUTE: '1000',
      },
    });
    await untilReady(service);
  });
  afterAll(async () => {
    await service?.stop();
    await proxy?.stop();
    await network?.stop();
  });

  const failing = (answer: Answer): string[] =>
    Object.entries(JSON.parse(answer.body).checks as Record<string, { ok: boolean }>)
      .filter(([, { ok }]) => !ok)
      .map(([name]) => name);

  const lightning = () => network.lightning!;
  const sign = async (tag: string): Promise<Payment> =>
    (await newBuyer(network)).sign(service.origin, `${PATH}?tag=${tag}`);

  describe.each(['away', 'swallow'] as const)('(%s)', ONE_OUTAGE, (how) => {
    let payment: Payment;
    let proof: Awaited<ReturnType<typeof payFor>>;
    beforeAll(async () => {
      payment = await sign(how);
      // A busy machine may reach the short time-outs.
      const buy = () => payFor(lightning().pay, service.origin, `${moody.path}?tag=${how}`);
      proof = await vi.waitFor(buy, { timeout: 60_000, interval: 100 });
      proxy[how]();
    });
    afterAll(() => proxy.heal());

    test('readiness reports it in time, and names it', async () => {
      const ask = async () => {
        const late = AbortSignal.timeout(READY_WITHIN_MS + SLACK_MS);
        const answer = await fetch(`${service.origin}/readyz`, { signal: late });
        return { status: answer.status, headers: {}, body: await answer.text() };
      };
      let last = await ask();
      // An earlier reading is served for a second.
      await until('it says so', async () => {
        last = await ask();
        return last.status !== 200;
      });
      expect(problem(last)).toEqual([503, 'not_ready', false]);
      expect(failing(last)).toContain('ledger');
    });

    test('USDC sales are refused before their handler runs, and whether the payment was taken before is reported as unknown', async () => {
      const before = moody.runs();
      const answer = await present(service.origin, `${PATH}?tag=${how}`, payment);
      expect(problem(answer)).toEqual([503, 'ledger_unavailable', 'unknown']);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
      expect(moody.runs()).toBe(before);
      expect(await usesOf(network, payment)).toBe(0);
    });

    test('no invoice is offered, and a proof stays valid', async () => {
      const before = moody.runs();
      expect(problem(await call(service.origin, moody.path))).toEqual([503, 'ledger_unavailable', false]);
      const answer = await presentProof(service.origin, `${moody.path}?tag=${how}`, proof);
      expect(problem(answer)).toEqual([503, 'ledger_unavailable', 'unknown']);
      expect(moody.runs()).toBe(before);
    });

    test('the facilitator claims nothing and gives the reason in its own terms', async () => {
      expect(await settleOver(service.origin, [proofNow()], 1)).toEqual(['replay_store_unavailable']);
      // Earlier figures are served for a second.
      await until('its descriptor is gone', async () => (await service.get('/facilitator')).status !== 200);
      expect(problem(await service.get('/facilitator'))[0]).toBe(503);
    });

    test('free routes and challenges are still answered', async () => {
      const answers = await Promise.all(FREE.map(async (path) => [path, (await service.get(path)).status]));
      expect(answers).toEqual(FREE.map((path) => [path, 200]));
      expect((await service.get(PATH)).status).toBe(402);
    });

    test('once it is back, everything continues by itself, with earlier payments and offers', async () => {
      proxy.heal();
      await untilReady(service);
      await presentUntilServed(service.origin, `${PATH}?tag=${how}`, payment);
      expect(await usesOf(network, payment)).toBe(1);
      expect(await transfersOf(network, payment)).toBe(1);
      await until('the proof is served', async () => {
        const answer = await presentProof(service.origin, `${moody.path}?tag=${how}`, proof);
        return answer.status === 200;
      });
      await expect.poll(() => settleOver(service.origin, [proofNow()], 1)).toEqual(['success']);
    });
  });

  test('a short failure of the ledger is not logged as a bug, and a broken rule still is', async () => {
    proxy.cut();
    const again = await sign('stumble');
    const answer = await presentUntilServed(service.origin, `${PATH}?tag=stumble`, again);
    expect(answer.status).toBe(200);
    const { lightningStore } = service.deps;
    const broken = { network: 'x', paymentHash: Buffer.alloc(5), payTo: Buffer.alloc(33), amountMsat: 1n };
    const claim = { ...broken, claimedAt: 1, keepUntil: 2, grant: null, account: null };
    const error = () => lightningStore.claim(claim).catch((reason: unknown) => reason);
    await expect.poll(error).toMatchObject({ name: 'LedgerDatabaseError', code: '23514' });
  });
});
