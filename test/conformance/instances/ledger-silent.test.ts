import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { describePostgres } from '../../support/ledger/ledger-adapters.ts';
import { type DatabaseProxy, startDatabaseProxy } from '../../support/postgres/database-proxy.ts';
import { freshDatabase } from '../../support/postgres/postgres-run.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { presentUntilServed, until, untilReady, usesOf } from '../../support/service/workers.ts';
import { newBuyer, type Payment } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/test/moody';
/** A client that waits longer than many do, and not as long as the database client takes to notice a dead connection (11 s). */
const CLIENT_GIVES_UP_MS = 8000;
const moody = moodyEndpoint();

/** The defaults of a service, as a buyer meets them. */
const DEFAULT_TIMES = { LEDGER_CONNECT_TIMEOUT_MS: '3000', LEDGER_STATEMENT_TIMEOUT_MS: '5000' };

describePostgres('a ledger from which nothing comes any more', () => {
  let network: EmbeddedNetwork;
  let proxy: DatabaseProxy;
  let service: Service;
  let buyer: Awaited<ReturnType<typeof newBuyer>>;
  beforeAll(async () => {
    network = await startEmbeddedNetwork();
    proxy = await startDatabaseProxy(await freshDatabase());
    service = await startService(network, {
      catalogue: [moody.endpoint],
      env: { LEDGER_URL: proxy.url, COLLECTOR: 'off', SETTLE_WAIT_MS: '1500', ...DEFAULT_TIMES },
    });
    buyer = await newBuyer(network);
    await untilReady(service);
  });
  afterAll(async () => {
    proxy?.heal();
    await service?.stop();
    await proxy?.stop();
    await network?.stop();
  });

  const show = async ({ header }: Payment) => {
    const signal = AbortSignal.timeout(CLIENT_GIVES_UP_MS);
    const answer = await fetch(service.origin + PATH, { headers: { 'payment-signature': header }, signal });
    const { code, charged } = (await answer.json()) as { code: string; charged: unknown };
    return [answer.status, code, charged];
  };

  test('is reported to the buyer before its client gives up: no handler runs, nothing is charged, a payment that was sent before never counts as uncharged, and the same payments buy later', async () => {
    const payments = await Promise.all([1, 2, 3].map(() => buyer.sign(service.origin, PATH)));
    const sent = await buyer.sign(service.origin, PATH);
    await network.pauseMining();
    expect(await show(sent)).toEqual([503, 'settlement_unknown', 'unknown']);
    await network.resumeMining();
    await until('it is on the chain', async () => (await usesOf(network, sent)) === 1);
    const before = moody.runs();
    proxy.swallow();
    const refused = [503, 'ledger_unavailable', 'unknown'];
    const all = [...payments, sent];
    expect(await Promise.all(all.map(show))).toEqual([refused, refused, refused, refused]);
    expect(moody.runs()).toBe(before);
    proxy.heal();
    const uses = () => Promise.all(all.map((payment) => usesOf(network, payment)));
    expect(await uses()).toEqual([0, 0, 0, 1]);
    // All at once, because each finds one of the connections that never answer again.
    await Promise.all(all.map((payment) => presentUntilServed(service.origin, PATH, payment)));
    expect(await uses()).toEqual([1, 1, 1, 1]);
  });
});
