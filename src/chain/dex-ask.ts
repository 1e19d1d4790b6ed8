import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import { keccak256 } from '../lib/secp256k1.ts';
import { decodeUint } from './contracts.ts';
import { type CreatedPool, NATIVE_CURRENCY, type PoolKind } from './dex.ts';
import type { ChainClient } from './rpc/client.ts';
import { data, type RpcCall, type RpcOptions, readOutcome } from './rpc/wire.ts';

// Which pools exist, by the contracts that create them: public nodes keep creation events for some days only.

/** What creates pools (v4: the pool manager). */
interface PoolSource {
  readonly kind: PoolKind;
  readonly address: `0x${string}`;
}

/** Checked by a test. */
export const ASK_SELECTORS = {
  'getPair(address,address)': '0xe6a43905',
  'getPool(address,address,uint24)': '0x1698ee82',
  'getPool(address,address,int24)': '0x28af8d0b',
  'extsload(bytes32)': '0x1e2eaeaf',
} as const;

/** The usual fees, in millionths, with their tick spacings, of v3 and v4. */
const FEES: readonly (readonly [fee: number, tickSpacing: number])[] = [
  [100, 1],
  [500, 10],
  [3000, 60],
  [10_000, 200],
];
/** Tick spacings of Aero on Arc. */
const SLIPSTREAM_SPACINGS = [1, 10, 50, 100, 200, 2000];
/** StateLibrary.sol of v4-core. */
const V4_POOLS_SLOT = 6;

interface PoolQuestion {
  readonly call: RpcCall;
  /** For an answer other than zero. */
  pool(answer: bigint): CreatedPool;
}

/** The pools of `tokens` against `usdc` (v4: also native) with the usual fees. A source that reverts has none. */
export async function askForPools<S extends PoolSource>(
  chain: ChainClient,
  sources: readonly S[],
  tokens: readonly `0x${string}`[],
  usdc: `0x${string}`,
  options: RpcOptions,
): Promise<{ pool: CreatedPool; source: S }[]> {
  const questions = sources.flatMap((source) =>
    tokens.flatMap((token) => questionsAbout(source, token, usdc).map((question) => ({ ...question, source }))),
  );
  const calls = questions.map(({ call }) => call);
  const outcomes = await chain.batch(calls, options);
  return questions.flatMap(({ pool, source }, at) => {
    const outcome = outcomes[at];
    if (outcome !== undefined && 'error' in outcome) return [];
    const answer = decodeUint(readOutcome(outcome, data, 'a pool'));
    return answer === null || answer === 0n ? [] : [{ pool: pool(answer), source }];
  });
}

function questionsAbout({ kind, address }: PoolSource, token: `0x${string}`, usdc: `0x${string}`): PoolQuestion[] {
  const [token0, token1] = inOrder(token, usdc);
  const byAddress = (input: string): PoolQuestion => ({
    call: view(address, input),
    pool(answer) {
      const id = `0x${answer.toString(16).padStart(40, '0')}` as const;
      return { kind, id, emitter: id, token0, token1 };
    },
  });
  const pair = `${word(token0)}${word(token1)}`;
  switch (kind) {
    case 'v2':
      return [byAddress(`${ASK_SELECTORS['getPair(address,address)']}${pair}`)];
    case 'v3':
      return FEES.map(([fee]) => byAddress(`${ASK_SELECTORS['getPool(address,address,uint24)']}${pair}${word(fee)}`));
    case 'slipstream':
      return SLIPSTREAM_SPACINGS.map((spacing) =>
        byAddress(`${ASK_SELECTORS['getPool(address,address,int24)']}${pair}${word(spacing)}`),
      );
    case 'v4':
      return ([usdc, NATIVE_CURRENCY] as const).flatMap((side) => {
        const [currency0, currency1] = inOrder(token, side);
        return FEES.map(([fee, spacing]): PoolQuestion => {
          const id = v4PoolId({ currency0, currency1, fee, tickSpacing: spacing, hooks: NATIVE_CURRENCY });
          const slot = bytesToHex(keccak256(hexToBytes(`${id}${word(V4_POOLS_SLOT)}`)));
          return {
            call: view(address, `${ASK_SELECTORS['extsload(bytes32)']}${slot.slice(2)}`),
            // A pool's state begins with its price, never zero once the pool is initialised.
            pool: () => ({ kind, id, emitter: address, token0: currency0, token1: currency1 }),
          };
        });
      });
  }
}

interface V4PoolKey {
  readonly currency0: `0x${string}`;
  readonly currency1: `0x${string}`;
  readonly fee: number;
  readonly tickSpacing: number;
  readonly hooks: `0x${string}`;
}

/** keccak-256 of the key's fields as 32-byte words. Tick spacings are positive. */
export function v4PoolId({ currency0, currency1, fee, tickSpacing, hooks }: V4PoolKey): `0x${string}` {
  const words = [currency0, currency1, fee, tickSpacing, hooks].map(word).join('');
  return bytesToHex(keccak256(Buffer.from(words, 'hex')));
}

function inOrder(a: `0x${string}`, b: `0x${string}`): readonly [`0x${string}`, `0x${string}`] {
  return a < b ? [a, b] : [b, a];
}

function view(to: string, input: string): RpcCall {
  return { method: 'eth_call', params: [{ to, data: input }, 'latest'] };
}

function word(value: number | string): string {
  return (typeof value === 'number' ? value.toString(16) : value.slice(2)).padStart(64, '0');
}
