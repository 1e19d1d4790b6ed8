import { ARC_SYSTEM_ADDRESS, readTokens } from '../chain/erc20.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { RpcOptions } from '../chain/rpc/wire.ts';
import { NATIVE_DECIMALS } from '../lib/units.ts';

/** What amounts of a token are shown with; null where its contract does not say. */
export interface TokenUnits {
  readonly symbol: string | null;
  readonly decimals: number | null;
}

const NATIVE_USDC: TokenUnits = { symbol: 'USDC', decimals: NATIVE_DECIMALS };
const UNKNOWN: TokenUnits = { symbol: null, decimals: null };

/** Reads symbols and decimals of the tokens that a transaction moved, in one batch. The system's address stands for native USDC and is not read. */
export async function readTokenUnits(
  chain: ChainClient,
  tokens: readonly `0x${string}`[],
  block: number,
  options: RpcOptions,
): Promise<(token: string) => TokenUnits> {
  const contracts = [...new Set(tokens)].filter((token) => token !== ARC_SYSTEM_ADDRESS);
  const units = new Map<string, TokenUnits>([[ARC_SYSTEM_ADDRESS, NATIVE_USDC]]);
  for (const token of await readTokens(chain, contracts, block, options)) {
    if (token !== null) units.set(token.address, token);
  }
  return (token) => units.get(token) ?? UNKNOWN;
}
