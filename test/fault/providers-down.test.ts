import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { type RpcProxy, startRpcProxy } from '../support/chain/rpc-proxy.ts';
import { latchedEndpoint } from '../support/service/latch.ts';
import { call, type Service, startService } from '../support/service/service.ts';
import { newBuyer, present } from '../support/usdc/buyer.ts';

// What sells, waits and is said with one to four RPC providers of which one is down: each row of the table of docs/operating.md.

const WITHIN_MS = 60_000;

/** A row of the table, by its columns. */
interface Row {
  readonly providers: number;
  readonly sales: string;
  readonly said: string;
}

function rowsOfTheTable(): Row[] {
  const page = readFileSync(join(import.meta.dirname, '../../docs/operating.md'), 'utf8');
  const [, table = ''] = page.split('| providers | one down |');
  const lines = table.split('\n\n')[0]?.split('\n').slice(2) ?? [];
  return lines.map((line) => {
    const [, providers, , sales = '', , said = ''] = line.split('|').map((cell) => cell.trim());
    return { providers: Number(providers), sales, said };
  });
}

const rows = rowsOfTheTable();
let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
});
afterAll(() => network.stop());

async function withProviders<T>(count: number, work: (service: Service, down: RpcProxy) => Promise<T>): Promise<T> {
  const proxies = await Promise.all(Array.from({ length: count }, () => startRpcProxy(network.rpcUrl)));
  const [down] = proxies;
  if (!down) throw new Error('no provider');
  const latch = latchedEndpoint();
  const service = await startService(network, {
    catalogue: [latch.endpoint],
    env: {
      RPC_URLS: proxies.map(({ url }) => url).join(),
      RPC_TIMEOUT_MS: '2000',
      METRICS_TOKEN: 'a-token-of-this-test',
    },
  });
  try {
    return await work(service, down);
  } finally {
    await service.stop();
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  }
}

const buy = async (service: Service, path: string) => {
  const payment = await (await newBuyer(network)).sign(service.origin, path);
  return present(service.origin, path, payment);
};

async function checksOf({ origin }: Service): Promise<Record<string, { ok: boolean; detail?: string }>> {
  return JSON.parse((await call(origin, '/readyz')).body).checks;
}

async function metricOf({ origin }: Service, name: string): Promise<number[]> {
  const { body } = await call(origin, '/metrics', { headers: { authorization: 'Bearer a-token-of-this-test' } });
  return [...body.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)`, 'gm'))].map(([, value]) => Number(value));
}

test('the table has a row for one to four providers', () => {
  expect(rows.map(({ providers }) => providers)).toEqual([1, 2, 3, 4]);
});

describe.each(rows)('of $providers RPC providers one is down', { concurrent: true }, ({ providers, sales, said }) => {
  test(`sales ${sales}; said is ${said}`, async () => {
    const { path } = latchedEndpoint();
    await withProviders(providers, async (service, down) => {
      expect((await buy(service, path)).status).toBe(200);
      down.fault({ '*': 'refuse' });
      if (sales === 'go on') {
        await vi.waitFor(
          async () =>
            expect((await metricOf(service, 'rpc_provider_trusted')).sort()).toEqual([
              0,
              ...Array(providers - 1).fill(1),
            ]),
          { timeout: WITHIN_MS, interval: 200 },
        );
        expect((await buy(service, path)).status).toBe(200);
        expect((await checksOf(service)).rpc).toMatchObject({
          ok: true,
          detail: expect.stringContaining('does not answer'),
        });
        expect(said).toContain('rpc_provider_trusted');
        return;
      }
      const part = /`(\w+)`/.exec(said)?.[1] ?? '';
      await vi.waitFor(async () => expect((await checksOf(service))[part]).toMatchObject({ ok: false }), {
        timeout: WITHIN_MS,
        interval: 200,
      });
      const { detail = '' } = (await checksOf(service))[part] ?? {};
      const quoted = /"([^"]+)"/.exec(said)?.[1];
      if (quoted) expect(detail).toBe(quoted);
      const refused = await buy(service, path);
      expect([502, 503]).toContain(refused.status);
      expect(JSON.parse(refused.body)).toMatchObject({ charged: false });
      if (providers > 1) expect(await metricOf(service, 'rpc_agreement')).toEqual([0]);
      down.fault({});
      await vi.waitFor(async () => expect((await buy(service, path)).status).toBe(200), {
        timeout: WITHIN_MS,
        interval: 500,
      });
    });
  });
});
