import type { ServiceKeyStore } from '../ports/service-keys.ts';
import type { Pools } from './pool.ts';
import { statement } from './statement.ts';
import type { WriteQueue } from './write-queue.ts';

const INSERT = statement<{ name: string; fresh: Uint8Array }>(
  'INSERT INTO service_keys (name, value) VALUES (@name, @fresh) ON CONFLICT DO NOTHING',
);
const READ = statement<{ name: string }>('SELECT value FROM service_keys WHERE name = @name');

/** The ledger's keys on PostgreSQL, the same for all instances. */
export function createServiceKeys({ read }: Pools, queue: WriteQueue): ServiceKeyStore {
  return {
    keep: async (name, fresh) => {
      await queue.write({ statements: [INSERT({ name, fresh })], read: () => {} });
      return (await read<{ value: Uint8Array }>(READ({ name })))[0]?.value ?? fresh;
    },
  };
}
