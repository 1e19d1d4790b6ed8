import { type LinkedHeader, readLinkedHeader } from '../chain/block.ts';
import { askChecked, Contradiction, resultOrRefusal } from '../chain/rpc/checked.ts';
import type { RpcOutcome } from '../chain/rpc/wire.ts';
import { type CollectorContext, noteRefused } from './context.ts';

/** The chain that the database was filled from, as stored in it. */
interface StoredIdentity {
  readonly chainId: number;
  /** Null when no provider had the genesis block. */
  readonly hash: string | null;
}

/** Rounds in which all providers must report another genesis before the database is emptied, because rolled-up hours cannot be read again. */
const ROUNDS = 3;

/**
 * Creates the check that the database is of this chain. It must pass before anything is stored:
 * 1. the database is empty: chain id and genesis are stored (only the id when the node has pruned the genesis);
 * 2. both are as stored: the check passes;
 * 3. the genesis differs: the provider is refused and the next one is asked; the check passes when one provider agrees;
 * 4. every provider differed in all rounds (a test chain was restarted), or the chain id was changed: everything is deleted and read again.
 */
export function createIdentityCheck(context: CollectorContext): () => Promise<void> {
  const { headChain, facts, writes, log, state } = context;
  let rounds = 0;

  function read(outcome: RpcOutcome | undefined, stored: StoredIdentity | null): LinkedHeader | null {
    const result = resultOrRefusal(outcome);
    if (result === undefined) throw new Contradiction('missing', 'no answer about genesis');
    const genesis = result === null ? null : readLinkedHeader(outcome, 0);
    if (stored?.hash && genesis && genesis.hash !== stored.hash) {
      throw new Contradiction('genesis', 'another genesis than the stored chain has');
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
    log.error(
      { chainId: headChain.chainId },
      'the chain database is of another chain; the collector empties it and fills it again',
    );
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
