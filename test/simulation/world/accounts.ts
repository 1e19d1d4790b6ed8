import type { createRandom } from '../engine/random.ts';
import { accountOf, type Hex, toHex } from './chain/keys.ts';

/** The accounts that are there before the first move. `elsewhere` is where money goes that leaves a payer. */
export function createAccounts(random: ReturnType<typeof createRandom>) {
  const make = () => accountOf(random.bytes(32));
  const elsewhere = { privateKey: random.bytes(32), address: toHex(random.bytes(20)) as Hex };
  const first = { relayer: make(), seller: make(), facilitator: make(), outsider: make(), elsewhere };
  return { ...first, authorizer: make() };
}

export type Accounts = ReturnType<typeof createAccounts>;
