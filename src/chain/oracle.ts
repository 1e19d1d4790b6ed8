import { UpstreamFailed } from '../errors.ts';
import { SELECTORS } from './contracts.ts';
import { type ChainClient, createChainCache } from './rpc/client.ts';
import { data, type RpcCall, type RpcOptions, type RpcOutcome, readOutcome, toQuantity } from './rpc/wire.ts';

/** `answer` is positive, in 10^-decimals of the quote currency. */
export interface Round {
  readonly id: bigint;
  readonly answer: bigint;
  /** Unix seconds. */
  readonly at: number;
}

export type Rounds = readonly [Round, ...Round[]];

interface OracleReading {
  /** They differ between deployments. */
  readonly decimals: number;
  /** Newest first. */
  readonly rounds: Rounds;
  /** Null when the token does not answer. */
  readonly supply: { readonly units: bigint; readonly decimals: number } | null;
}

/** Chainlink's AggregatorV3Interface. Checked by a test. */
export const ORACLE_SELECTORS = { 'latestRoundData()': '0xfeaf968c', 'getRoundData(uint80)': '0x9a6fc8f5' } as const;

/** A proxy's round id is phase · 2^64 + round, beginning at 1 in each phase. */
const ROUND_IN_PHASE = 2n ** 64n - 1n;
const UINT80 = 2n ** 80n;
const INT256_MAX = 2n ** 255n - 1n;
const MAX_AT = 2n ** 40n;

/** A past round never changes. A day of half-second blocks: a wrong answer must not stay for ever. */
const cacheOf = createChainCache<Round>(172_800, 500);

/**
 * A Chainlink-style oracle and the token that it prices, at one block. The rounds, at most `maxRounds` (up to 100), end
 * before the first that the oracle does not give. Throws UpstreamFailed without a newest price.
 */
export async function readOracle(
  chain: ChainClient,
  { oracle, token }: { readonly oracle: string; readonly token: string },
  block: number,
  maxRounds: number,
  options: RpcOptions,
): Promise<OracleReading> {
  const [newest, places, supply, tokenPlaces] = await chain.batch(
    [
      view(oracle, ORACLE_SELECTORS['latestRoundData()'], block),
      view(oracle, SELECTORS['decimals()'], block),
      view(token, SELECTORS['totalSupply()'], block),
      view(token, SELECTORS['decimals()'], block),
    ],
    options,
  );
  const [latest, decimals] = [toRound(readWords(newest)), toDecimals(readWords(places))];
  if (latest === null || decimals === null) throw new UpstreamFailed('price oracle', 'has no price');
  const [units] = readWords(supply);
  const tokenDecimals = toDecimals(readWords(tokenPlaces));
  return {
    decimals,
    rounds: [latest, ...(await readPast(chain, oracle, latest.id, block, maxRounds - 1, options))],
    supply: units === undefined || tokenDecimals === null ? null : { units, decimals: tokenDecimals },
  };
}

async function readPast(
  chain: ChainClient,
  oracle: string,
  latest: bigint,
  block: number,
  count: number,
  options: RpcOptions,
): Promise<Round[]> {
  const before = Math.max(Number(latest & ROUND_IN_PHASE) - 1, 0);
  const ids = Array.from({ length: Math.min(count, before) }, (_, back) => latest - BigInt(back + 1));
  const cache = cacheOf(chain);
  const known = new Map(ids.map((id) => [id, cache.get(`${oracle}/${id}`, block)]));
  const missing = ids.filter((id) => known.get(id) === undefined);
  const calls = missing.map((id) => {
    const argument = id.toString(16).padStart(64, '0');
    return view(oracle, `${ORACLE_SELECTORS['getRoundData(uint80)']}${argument}`, block);
  });
  const outcomes = calls.length > 0 ? await chain.batch(calls, options) : [];
  missing.forEach((id, at) => {
    const round = toRound(readWords(outcomes[at]));
    // Not an answer about another round.
    if (round?.id !== id) return;
    known.set(id, round);
    cache.set(`${oracle}/${id}`, block, round);
  });
  const rounds = ids.map((id) => known.get(id));
  const end = rounds.indexOf(undefined);
  return rounds.slice(0, end === -1 ? rounds.length : end).filter((round) => round !== undefined);
}

function view(to: string, input: string, block: number): RpcCall {
  return { method: 'eth_call', params: [{ to, data: input }, toQuantity(block)] };
}

/** The 32-byte words; none on a revert ("No data present"). Other failures throw UpstreamFailed. */
function readWords(outcome: RpcOutcome | undefined): bigint[] {
  // geth and reth by code 3, other nodes by the message alone.
  if (
    outcome !== undefined &&
    'error' in outcome &&
    (outcome.error.code === 3 || /revert/i.test(outcome.error.message))
  ) {
    return [];
  }
  const returned = readOutcome(outcome, data, 'contract answer');
  return (returned.slice(2).match(/.{64}/g) ?? []).map((word) => BigInt(`0x${word}`));
}

/** roundId, answer, startedAt, updatedAt, answeredInRound. Null while it is not finished. */
function toRound([id, answer, , updatedAt]: readonly bigint[]): Round | null {
  if (id === undefined || answer === undefined || updatedAt === undefined) return null;
  const isPrice = answer > 0n && answer <= INT256_MAX;
  return isPrice && id < UINT80 && updatedAt > 0n && updatedAt < MAX_AT ? { id, answer, at: Number(updatedAt) } : null;
}

function toDecimals([places]: readonly bigint[]): number | null {
  return places !== undefined && places <= 255n ? Number(places) : null;
}
