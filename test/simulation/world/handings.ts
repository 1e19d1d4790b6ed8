import { readerOf } from './chain/abi.ts';
import type { Chain } from './chain/chain.ts';
import { type ChannelTerms, depositTerms, readDeposit, SETTLEMENT } from './chain/channel-terms.ts';
import { MULTICALL3 } from './chain/execute.ts';
import type { Hex } from './chain/keys.ts';
import { readTransfer, type Terms, USDC } from './chain/token.ts';
import type { Transaction } from './chain/transactions.ts';
import type { Handed } from './handed.ts';

/** An authorization as a transaction carries it: a payment, or a deposit into a channel. */
export interface Carried {
  readonly rail: 'usdc' | 'channels';
  readonly terms: Terms;
  readonly signature: Buffer;
}

/** One moment at which an authorization left the service, towards a party that can take its money. */
export interface Handing {
  readonly to: 'chain' | 'facilitator' | 'gateway';
  readonly rail: 'usdc' | 'gateway' | 'channels';
  readonly atMs: number;
  readonly terms: Terms;
  readonly signature: Buffer;
  /** Of the relayer's transaction. */
  readonly hash: Hex | null;
}

type Listener = (handing: Handing) => void;

/** The authorizations in a transaction: one alone, or many in a batch. */
export function authorizationsIn({ to, data }: Pick<Transaction, 'to' | 'data'>, ids: ChannelTerms): Carried[] {
  try {
    if (to !== MULTICALL3) return [carriedIn(to, data, ids)].filter((one) => one !== null);
    const args = readerOf(data.slice(10));
    const list = args.short(0) + 32;
    return Array.from({ length: args.short(args.short(0)) }, (_, at) => {
      const base = list + args.short(list + 32 * at);
      return carriedIn(args.address(base), args.bytes(base + 64, base), ids);
    }).filter((one) => one !== null);
  } catch {
    return [];
  }
}

function carriedIn(to: Hex, data: Hex, ids: ChannelTerms): Carried | null {
  if (to === USDC) {
    const read = readTransfer(data);
    return read && { rail: 'usdc', ...read };
  }
  const read = to === SETTLEMENT ? readDeposit(data) : null;
  if (!read) return null;
  const { config, deposit } = read;
  return {
    rail: 'channels',
    terms: depositTerms(ids.channelId(config), config, deposit),
    signature: deposit.signature,
  };
}

/** Every authorization that the service has let out of its hands, when and how often. */
export function createHandings(nowMs: () => number, chain: Chain, relayer: Hex) {
  const handings: Handing[] = [];
  const byKey = new Map<string, Handing[]>();
  const listeners: Listener[] = [];

  function note(handing: Handing): void {
    handings.push(handing);
    const key = `${handing.rail} ${handing.terms.from} ${handing.terms.nonce}`;
    byKey.set(key, [...(byKey.get(key) ?? []), handing]);
    for (const listener of listeners) listener(handing);
  }

  chain.onSubmit((transaction) => {
    if (transaction.from !== relayer) return;
    for (const carried of authorizationsIn(transaction, chain.channelTerms))
      note({ to: 'chain', atMs: nowMs(), ...carried, hash: transaction.hash });
  });

  return {
    toFacilitator: ({ terms, signature }: Handed): void =>
      note({ to: 'facilitator', rail: 'usdc', atMs: nowMs(), terms, signature, hash: null }),
    toGateway: ({ terms, signature }: Handed): void =>
      note({ to: 'gateway', rail: 'gateway', atMs: nowMs(), terms, signature, hash: null }),
    all: (): readonly Handing[] => handings,
    /** Of one payment, by its rail, payer and nonce. */
    of: (key: string): readonly Handing[] => byKey.get(key) ?? [],
    listen: (listener: Listener): void => void listeners.push(listener),
  };
}
