import type { ClientBase } from 'pg';

/** Longer than a living instance is ever silent, by what instances hold of each other. */
const LIVING_MS = 15_000;
const COUNT = `SELECT count(*) AS living FROM instances
  WHERE seen_at > (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT - ${LIVING_MS}`;

/** How many services work on this ledger now, by the database's own clock; one that was killed counts for 15 seconds more. */
export async function countLivingInstances(client: Pick<ClientBase, 'query'>): Promise<number> {
  const { rows } = await client.query<{ living: string | number }>(COUNT);
  return Number(rows[0]?.living ?? 0);
}
