import { encodeFunctionData, type Hex, parseAbi } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { artifacts, send } from '../../../dev/contracts.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { deployUsyc } from '../../../dev/tokens.ts';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { chainUsyc } from '../../../src/endpoints/chain/usyc.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { openClient } from '../../support/chain/client.ts';
import { decimal } from '../../support/chain/recount.ts';

// The oracle is a contract on a real EVM. The test reads its rounds by other code than the service's client, and computes the figures again.

const PUBLISHER: Hex = `0x${'9b'.repeat(20)}`;
const DAY = 86_400;
const E18 = 10n ** 18n;
/** Chainlink's own declaration, not our contract's. */
const AGGREGATOR = parseAbi([
  'function latestRoundData() view returns (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound)',
  'function getRoundData(uint80) view returns (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound)',
]);

interface Reply {
  priceUsd: string;
  round: string;
  updatedAt: number;
  growth: Record<'annualised7dPercent' | 'annualised30dPercent' | 'annualised7d' | 'annualised30d', string | null>;
  supplyOnChain: string | null;
  history: { round: string; at: number; usd: string }[];
  asOfBlock: number;
}

let network: EmbeddedNetwork;
let chain: OpenChainClient;
let usyc: { token: Hex; oracle: Hex };

beforeAll(async () => {
  network = await startEmbeddedNetwork();
  chain = openClient({ rpcUrls: [network.rpcUrl], chainId: network.chainId, timeoutMs: 60_000 });
  usyc = await deployUsyc(network);
  await network.rpc('anvil_impersonateAccount', [PUBLISHER]);
  await network.fundNative(PUBLISHER, 10n ** 20n);
  await network.pauseMining();
});
afterAll(async () => {
  await chain?.close();
  await network?.stop();
});

async function ask(contracts = usyc): Promise<Reply> {
  const sources = { chain, clock: systemClock, usyc: contracts };
  return chainUsyc.result.parse(await chainUsyc.run({}, sources, AbortSignal.timeout(60_000))) as unknown as Reply;
}

/** The words of a round, from the node itself. */
async function roundData(oracle: Hex, id: bigint, block: number) {
  const input = encodeFunctionData({ abi: AGGREGATOR, functionName: 'getRoundData', args: [id] });
  const returned = await network.rpc<Hex>('eth_call', [{ to: oracle, data: input }, `0x${block.toString(16)}`]);
  const words = (returned.slice(2).match(/.{64}/g) ?? []).map((word) => BigInt(`0x${word}`));
  return { round: words[0]!.toString(), at: Number(words[3]), usd: decimal(words[1]!, 18) };
}

async function publish(oracle: Hex, answer: bigint, at: number): Promise<void> {
  const call = { abi: artifacts.Oracle.abi, functionName: 'publish', args: [answer, BigInt(at)] };
  await send(network.rpc, { from: PUBLISHER, to: oracle, data: encodeFunctionData(call) });
  await network.mine();
}

/** Uses logarithms, where the service uses a power. */
function growthOver(history: Reply['history'], days: number): number {
  const [last] = history;
  const since = history.filter(({ at }) => at <= last!.at - days * DAY)[0]!;
  const years = (last!.at - since.at) / (365 * DAY);
  return Math.expm1(Math.log(Number(last!.usd) / Number(since.usd)) / years) * 100;
}

test('usyc shows the last 35 rounds, the growth and the supply as the contracts have them', async () => {
  const reply = await ask();
  expect(reply.history).toHaveLength(35);
  expect(reply.history[0]).toEqual({ round: reply.round, at: reply.updatedAt, usd: reply.priceUsd });
  for (const [back, shown] of reply.history.entries()) {
    expect(shown).toEqual(await roundData(usyc.oracle, 45n - BigInt(back), reply.asOfBlock));
  }
  expect(reply.supplyOnChain).toBe('18250433.120977');
  const { annualised7dPercent: annualised7d, annualised30dPercent: annualised30d, ...old } = reply.growth;
  expect(old).toEqual({ annualised7d, annualised30d });
  expect(Number(annualised7d)).toBeCloseTo(growthOver(reply.history, 7), 3);
  expect(Number(annualised30d)).toBeCloseTo(growthOver(reply.history, 30), 3);
  // The configured growth of the price: 0.0137 % on five days of seven.
  expect(Number(annualised30d)).toBeGreaterThan(3);
  expect(Number(annualised30d)).toBeLessThan(4);
});

test('usyc shows a new round in its next answer, and moves the others back by one', async () => {
  const own = await deployUsyc(network);
  const before = await ask(own);
  await publish(own.oracle, 2n * E18, before.updatedAt + DAY);
  const after = await ask(own);
  expect(after).toMatchObject({ priceUsd: '2', round: '46', updatedAt: before.updatedAt + DAY });
  expect(after.history.slice(1)).toEqual(before.history.slice(0, -1));
  expect(after.asOfBlock).toBeGreaterThan(before.asOfBlock);
});

describe('usyc over another oracle', () => {
  const deploy = (decimals: number, phase: number, answers: bigint[], times: number[]) =>
    network.deploy('Oracle', [decimals, phase, answers, times.map(BigInt)]);
  const T = 1_790_000_000;

  test('with 8 decimals, in the second phase of a proxy, begins the history with that phase', async () => {
    const oracle = await deploy(8, 2, [113_000_000n, 113_000_001n, 113_826_451n], [T, T + DAY, T + 2 * DAY]);
    const reply = await ask({ ...usyc, oracle });
    const first = (2n << 64n) + 1n;
    expect(reply.history).toEqual([
      { round: `${first + 2n}`, at: T + 2 * DAY, usd: '1.13826451' },
      { round: `${first + 1n}`, at: T + DAY, usd: '1.13000001' },
      { round: `${first}`, at: T, usd: '1.13' },
    ]);
    expect(reply.growth).toEqual({
      annualised7dPercent: null,
      annualised30dPercent: null,
      annualised7d: null,
      annualised30d: null,
    });
  });

  test('ends the history at a round without a price', async () => {
    const oracle = await deploy(18, 0, [E18, 0n, E18, 2n * E18], [T, T + DAY, T + 2 * DAY, T + 10 * DAY]);
    expect((await ask({ ...usyc, oracle })).history.map(({ round }) => round)).toEqual(['4', '3']);
  });

  test('shows a negative growth for a price that falls', async () => {
    const oracle = await deploy(18, 0, [E18, (E18 * 999n) / 1000n], [T, T + 7 * DAY]);
    const { growth } = await ask({ ...usyc, oracle });
    expect(Number(growth.annualised7dPercent)).toBeCloseTo(Math.expm1(Math.log(0.999) * (365 / 7)) * 100, 3);
  });

  test.each([
    ['an oracle without a round', () => deploy(18, 0, [], [])],
    ['an oracle whose price is negative', () => deploy(18, 0, [-1n], [T])],
    ['a token', async () => usyc.token],
    ['an account without code', async () => PUBLISHER],
  ])('treats %s as a failing source, and gives no answer', async (_what, where) => {
    await expect(ask({ ...usyc, oracle: await where() })).rejects.toBeInstanceOf(UpstreamFailed);
  });

  test('shows an unknown supply where the address has no token', async () => {
    const { round, priceUsd } = await ask();
    expect(await ask({ ...usyc, token: PUBLISHER })).toMatchObject({ supplyOnChain: null, round, priceUsd });
  });
});
