import { type EventLog, type PoolKind, readWords } from './dex.ts';

/** The native currency, as v4 names it. */
export const NATIVE_CURRENCY = '0x0000000000000000000000000000000000000000';

/** First topics of the events that announce a new pool (checked by a test). */
export const CREATION_TOPICS = {
  'PairCreated(address,address,address,uint256)': '0x0d3648bd0f6ba80134a33ba9275ac585d9d315f0ad8355cddefde31afa28d0e9',
  'PoolCreated(address,address,uint24,int24,address)':
    '0x783cca1c0412dd0d695e784568c96da2e9c22ff989357a2e8b1d9b2b4e6b7118',
  'PoolCreated(address,address,int24,address)': '0xab0d57f0df537bb25e80245ef7748fa62353808c54d6e528a9dd20887aed9ac2',
  'Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)':
    '0xdd466e674ea557f56295e2d0218a125ea4b4f0f6f3307b95f85e6110838d6438',
} as const;

/** The topic of the creation event of each kind of pool. */
export const CREATION_TOPIC: Readonly<Record<PoolKind, `0x${string}`>> = {
  v2: CREATION_TOPICS['PairCreated(address,address,address,uint256)'],
  v3: CREATION_TOPICS['PoolCreated(address,address,uint24,int24,address)'],
  slipstream: CREATION_TOPICS['PoolCreated(address,address,int24,address)'],
  v4: CREATION_TOPICS['Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)'],
};

/** A pool as its creation event describes it. */
export interface CreatedPool {
  readonly kind: PoolKind;
  /** The pool's address; for v4 the pool id. */
  readonly id: `0x${string}`;
  /** The contract that emits the pool's Swap events. */
  readonly emitter: `0x${string}`;
  readonly token0: `0x${string}`;
  readonly token1: `0x${string}`;
}

/**
 * A hook with one of these permissions (the last bits of its address; Hooks.sol of v4-core: beforeSwapReturnDelta, afterSwapReturnDelta)
 * takes or gives amounts of its own. The Swap event of its pool then does not show what the swapper paid.
 */
const HOOK_CHANGES_AMOUNTS = 0b1100n;

/** The pool that a creation event of this kind announces. Null for any other event, and for a v4 pool whose hook changes amounts. */
export function decodeCreation(kind: PoolKind, { address, topics, data }: EventLog): CreatedPool | null {
  if (topics[0] !== CREATION_TOPIC[kind]) return null;
  const words = readWords(data);
  if (kind === 'v4') {
    const [, id, currency0, currency1] = topics;
    const hooks = words.length === 5 ? toAddress(words[2]) : null;
    if (!id || hooks === null || (BigInt(hooks) & HOOK_CHANGES_AMOUNTS) !== 0n) return null;
    return pool(kind, id, address, toAddress(currency0?.slice(2)), toAddress(currency1?.slice(2)));
  }
  // The pool's address: v2 (pool, count), v3 (tick spacing, pool), Slipstream (pool).
  const id = toAddress(words[kind === 'v3' ? 1 : 0]);
  return id && pool(kind, id, id, toAddress(topics[1]?.slice(2)), toAddress(topics[2]?.slice(2)));
}

function pool(
  kind: PoolKind,
  id: `0x${string}`,
  emitter: `0x${string}`,
  token0: `0x${string}` | null,
  token1: `0x${string}` | null,
): CreatedPool | null {
  return token0 && token1 ? { kind, id, emitter, token0, token1 } : null;
}

function toAddress(word: string | undefined): `0x${string}` | null {
  return word?.length === 64 && word.startsWith('0'.repeat(24)) ? `0x${word.slice(24)}` : null;
}
