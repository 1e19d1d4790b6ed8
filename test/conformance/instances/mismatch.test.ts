import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { acceptMismatch } from '../../../scripts/lib/ledger/beside-service.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { openPostgresStores } from '../../../src/store/open-postgres.ts';
import { describePostgres, POSTGRES_LIMITS } from '../../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../../support/postgres/postgres-run.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until, untilReady } from '../../support/service/workers.ts';
import { buyOnce } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';

describePostgres('a difference between the ledger and the chain', () => {
  let network: EmbeddedNetwork;
  let url: string;
  const instances: Service[] = [];
  beforeAll(async () => {
    network = await startEmbeddedNetwork();
    url = await freshDatabase();
    const env = { LEDGER_URL: url, RECONCILE_INTERVAL_MS: '200', COLLECTOR: 'off' };
    for (let instance = 0; instance < 2; instance++) instances.push(await startService(network, { env }));
  });
  afterAll(async () => {
    for (const instance of instances) await instance.stop();
    await network?.stop();
  });

  test('stops the sales of every instance, whichever compares the books, until it is accepted', async () => {
    for (const instance of instances) {
      await untilReady(instance);
      expect((await buyOnce(network, instance.origin, PATH)).answer.status).toBe(200);
    }
    const missing = { rail: 'usdc-exact', kind: 'missing', item: 'planted', amount: 1_000_001n, detail: '' } as const;
    const found = [{ ...missing, notedMs: Date.now() }];
    const { books, close } = await openPostgresStores({ url, ...POSTGRES_LIMITS, clock: systemClock });
    await books.record('eip155:5042', { found, ended: [] });
    await close();
    for (const { get } of instances)
      await until('it is stopped', async () => (await get('/readyz')).body.includes('the chain lacks 1.000001 USDC'));
    for (const { origin } of instances) {
      const { answer, paid } = await buyOnce(network, origin, PATH);
      expect([answer.status, paid]).toEqual([503, 0n]);
      expect(answer.body).toContain('settlement_unavailable');
    }
    await acceptMismatch({ location: { url }, clock: systemClock, print: () => {} });
    for (const instance of instances) {
      await untilReady(instance);
      expect((await buyOnce(network, instance.origin, PATH)).answer.status).toBe(200);
    }
  });
});
