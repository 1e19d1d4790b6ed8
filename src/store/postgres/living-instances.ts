import type { ClientBase } from 'pg';
import { NOW } from '../db/connections.ts';
import { LIVING_MS } from '../ports/instances.ts';

const COUNT = `SELECT count(*) AS living FROM instances WHERE seen_at > ${NOW} - ${LIVING_MS}`;

/** The number of services on this ledger now, by the database's own clock. A killed service counts for 15 more seconds. */
export async function countLivingInstances(client: Pick<ClientBase, 'query'>): Promise<number> {
  const { rows } = await client.query<{ living: string | number }>(COUNT);
  return Number(rows[0]?.living ?? 0);
}
