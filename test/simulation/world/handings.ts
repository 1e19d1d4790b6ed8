import { readerOf } from './chain/abi.ts';
import type { Chain } from './chain/chain.ts';
import { MULTICALL3 } from './chain/execute.ts';
import type { Hex } from './chain/keys.ts';
import { readTransfer, type Terms, USDC } from './chain/token.ts';
import type { Transaction } from './chain/transactions.ts';
import type { Handed } from './handed.ts';

/** One moment at which an authorization left the service, towards a party that can take its money. */
export interface Handing {
  readonly to: 'chain' | 'facilitator' | 'gateway';
  readonly atMs: number;
  readonly terms: Terms;
  readonly signature: Buffer;
  /** Of the relayer's transaction. */
  readonly hash: Hex | null;
}

type Listener = (handing: Handing) => void;

/** The authorizations in a transaction: one alone, or many in a batch. */
export function authorizationsIn({
  to,
  data,
}: Pick<Transaction, 'to' | 'data'>): { terms: Terms; signature: Buffer }[] {
  try {
    if (to === USDC) return [readTransfer(data)].filter((one) => one !== null);
    if (to !== MULTICALL3) return [];
    const args = readerOf(data.slice(10));
    const list = args.short(0) + 32;
    return Array.from({ length: args.short(args.short(0)) }, (_, at) => {
      const base = list + args.short(list + 32 * at);
      return args.address(base) === USDC ? readTransfer(args.bytes(base + 64, base)) : null;
    }).filter((one) => one !== null);
  } catch {
    return [];
  }
}

/** Every authorization that the service has let out of its hands, when and how often. */
export function createHandings(nowMs: () => number, chain: Chain, relayer: Hex) {
  const handings: Handing[] = [];
  const byKey = new Map<string, Handing[]>();
  const listeners: Listener[] = [];

  function note(handing: Handing): void {
    handings.push(handing);
    const key = `${handing.to === 'gateway' ? 'gateway' : 'usdc'} ${handing.terms.from} ${handing.terms.nonce}`;
    byKey.set(key, [...(byKey.get(key) ?? []), handing]);
    for (const listener of listeners) listener(handing);
  }

  chain.onSubmit((transaction) => {
    if (transaction.from !== relayer) return;
    for (const { terms, signature } of authorizationsIn(transaction))
      note({ to: 'chain', atMs: nowMs(), terms, signature, hash: transaction.hash });
  });

  return {
    toFacilitator: ({ terms, signature }: Handed): void =>
      note({ to: 'facilitator', atMs: nowMs(), terms, signature, hash: null }),
    toGateway: ({ terms, signature }: Handed): void =>
      note({ to: 'gateway', atMs: nowMs(), terms, signature, hash: null }),
    all: (): readonly Handing[] => handings,
    /** Of one payment, by its rail, payer and nonce. */
    of: (key: string): readonly Handing[] => byKey.get(key) ?? [],
    listen: (listener: Listener): void => void listeners.push(listener),
  };
}
