import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { ownPort } from './own-port.ts';
import { createProcess } from './process.ts';
import { startRoundRobin } from './round-robin.ts';
import { until } from './workers.ts';

/** Several instances of the service over one ledger on PostgreSQL, behind a load balancer. Each is a process with its own data. */
export async function startInstances(
  network: EmbeddedNetwork,
  ledgerUrl: string,
  count: number,
  env: Record<string, string> = {},
  /** The environment of one instance, by its index. */
  own: (at: number) => Record<string, string> = () => ({}),
) {
  const folder = mkdtempSync(join(tmpdir(), 'percall-instances-'));
  const ports = await Promise.all(Array.from({ length: count }, () => ownPort()));
  const balancer = await startRoundRobin(ports.map((port) => `http://127.0.0.1:${port}`));
  const instances = await Promise.all(
    ports.map((port, at) =>
      createProcess(network, join(folder, String(at)), {
        LEDGER_URL: ledgerUrl,
        PORT: String(port),
        PUBLIC_ORIGIN: balancer.origin,
        PAYER_MAX_OPEN: '0',
        COLLECTOR: 'off',
        REDELIVERY_MAX: '1000',
        ...env,
        ...own(at),
      }),
    ),
  );
  const origins = ports.map((port) => `http://127.0.0.1:${port}`);
  // Tests poll the ledger. A connection of its own for each query would start a process of PostgreSQL for each.
  const ledger = new Pool({ connectionString: ledgerUrl, max: 2, idleTimeoutMillis: 0 });
  // A test may kill PostgreSQL. The next query connects again.
  ledger.on('error', () => {});
  // One after the other, so that the first one leads.
  for (const instance of instances) await instance.start();

  return {
    /** Of the load balancer. */
    origin: balancer.origin,
    instances,
    /** Of each instance, past the load balancer. */
    origins,
    /** Rows of a query on the ledger. */
    ask: async <Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> =>
      (await ledger.query(text, values)).rows as Row[],
    stop: async () => {
      await ledger.end();
      for (const instance of instances) await instance.kill();
      await balancer.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type Instances = Awaited<ReturnType<typeof startInstances>>;

/** The index of the leading instance; -1 while none leads. */
export async function leaderOf({ origins }: Pick<Instances, 'origins'>): Promise<number> {
  const words = await Promise.all(
    origins.map(async (origin) => {
      const answer = await fetch(`${origin}/readyz`, { signal: AbortSignal.timeout(2000) }).catch(() => null);
      const readyz = (await answer?.json().catch(() => null)) as {
        checks?: { instances?: { leads?: boolean } };
      } | null;
      return readyz?.checks?.instances?.leads === true;
    }),
  );
  return words.indexOf(true);
}

/** The index of the leading instance, once one leads. */
export async function untilOneLeads(service: Pick<Instances, 'origins'>): Promise<number> {
  let leader = -1;
  await until('one leads', async () => {
    leader = await leaderOf(service);
    return leader >= 0;
  });
  return leader;
}
