import { type LinkedHeader, readLinkedHeader } from '../chain/full-block.ts';
import { askChecked, Contradiction, resultOrRefusal } from '../chain/rpc/checked.ts';
import type { RpcOutcome } from '../chain/rpc/client.ts';
import { type CollectorContext, noteRefused } from './context.ts';

/** What the database says about the chain that it was filled from. */
interface StoredIdentity {
  readonly chainId: number;
  /** Null when no provider had genesis to show. */
  readonly hash: string | null;
}

/** Rounds over all providers that must agree on another genesis before the database is emptied: rolled-up hours cannot be read again. */
const ROUNDS = 3;

/**
 * Makes the check that the database is of this chain, which must pass before anything is stored:
 * 1. it is empty: chain id and genesis are noted (a pruned node gives none: the id alone);
 * 2. both are as noted: go on;
 * 3. genesis differs: the provider is refused and the next one asked; one that agrees with us settles it;
 * 4. every provider differed, several rounds long (a test chain was started anew), or the chain id was changed: everything is dropped and read again.
 */
export function createIdentityCheck(context: CollectorContext): () => Promise<void> {
  const { headChain, facts, writes, log, state } = context;
  let rounds = 0;

  function read(outcome: RpcOutcome | undefined, stored: StoredIdentity | null): LinkedHeader | null {
    const result = resultOrRefusal(outcome);
    if (result === undefined) throw new Contradiction('missing', 'no answer about genesis');
    const genesis = result === null ? null : readLinkedHeader(outcome, 0);
    if (stored?.hash && genesis && genesis.hash !== stored.hash) {
      throw new Contradiction('genesis', 'another genesis than that of the stored chain');
    }
    return genesis;
  }

  async function ask(stored: StoredIdentity | null): Promise<LinkedHeader | null> {
    let differs = false;
    const call = { method: 'eth_getBlockByNumber', params: ['0x0', false] };
    const onRefused = (reason: Contradiction['reason']) => {
      differs ||= reason === 'genesis';
      noteRefused(context, reason);
    };
    try {
      return await askChecked(headChain, [call], ([outcome]) => read(outcome, stored), { onRefused });
    } catch (error) {
      if (differs) rounds += 1;
      throw error;
    }
  }

  function startAnew(): void {
    log.error({ chainId: headChain.chainId }, 'the chain database is of another chain; it is emptied and filled anew');
    writes.reset();
    Object.assign(state, { head: null, headAdvancedMs: null, next: null });
  }

  return async () => {
    const known = JSON.parse(facts.get('identity') ?? 'null') as StoredIdentity | null;
    const foreign = known !== null && (known.chainId !== headChain.chainId || rounds >= ROUNDS);
    if (foreign) startAnew();
    const stored = foreign ? null : known;
    const genesis = await ask(stored);
    if (stored !== null && (stored.hash !== null || genesis === null)) return;
    facts.set('identity', JSON.stringify({ chainId: headChain.chainId, hash: genesis?.hash ?? null }));
    if (genesis !== null) facts.set('genesis', JSON.stringify({ hash: genesis.hash, at: genesis.at }));
  };
}
