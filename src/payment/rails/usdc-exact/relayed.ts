import type { RailSettling, SettlingTerms } from '../../settler.ts';
import { createRelaying, type RelayingOptions } from '../../settlers/relayer/relaying.ts';
import type { Wallet } from '../../settlers/relayer/wallet.ts';

/** What settlement through our relayer needs besides its terms. */
export interface RelayedNeeds extends Omit<RelayingOptions, 'noteBroadcast' | 'wallet'> {
  /** Null where no relayer is configured. */
  wallet: Wallet | null;
}

/** The plain rail, settled by our relayer. Throws when no relayer is configured. */
export function openRelayed({ wallet, ...needs }: RelayedNeeds, { noteBroadcast }: SettlingTerms): RailSettling {
  if (!wallet) throw new Error('RELAYER_PRIVATE_KEY is missing');
  return { ...createRelaying({ ...needs, wallet, noteBroadcast }), evidence: needs.evidence, ownOnly: false };
}
