import { encodeAbiParameters } from 'viem';
import { afterEach, beforeEach } from 'vitest';
import type { OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { NO_COLLECTOR } from '../../../src/collector/store/facts.ts';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import type { CollectedSettings, Sources } from '../../../src/endpoints/sources.ts';
import { emptyChainDatabase } from '../../support/chain/chain-rows.ts';
import { openClient } from '../../support/chain/client.ts';
import { type RpcServer, startRpcServer } from '../../support/chain/rpc-server.ts';
import { createManualClock } from '../../support/manual-clock.ts';

export const USDC = '0x3600000000000000000000000000000000000000';
export const address = (end: string) => `0x${end.padStart(40, '0')}` as const;
export const ALICE = address('a1');
export const BOB = address('b2');
export const TOKEN = address('70');
export const hex = (value: number | bigint) => `0x${value.toString(16)}` as `0x${string}`;
export const number = (value: bigint) => `0x${value.toString(16).padStart(64, '0')}` as const;
const text = (value: string) => encodeAbiParameters([{ type: 'string' }], [value]);
export const HASH = `0x${'3e'.repeat(32)}` as const;
export const NOW_SECONDS = 1_795_200_000;

/** Nothing is configured. */
export const SETTINGS: CollectedSettings = {
  watched: [],
  endpoints: [],
  health: { stalledSeconds: 30, lagBlocks: 60, lagSeconds: 30 },
  floorWei: null,
  hasDistributor: false,
};

/** Half-second blocks that end now. The last digit of a block's number is its number of transactions. */
export const header = (block: number) => ({
  number: hex(block),
  hash: number(BigInt(block)),
  timestamp: hex(NOW_SECONDS - Math.floor((1000 - block) / 2)),
  gasUsed: hex(15_000_000),
  gasLimit: hex(30_000_000),
  extraData: '0x',
  baseFeePerGas: hex(20_130_000_001),
  transactions: Array.from({ length: block % 10 }, () => HASH),
});

/** The sources of endpoints over the chain. The collector has collected nothing. */
export type ChainSources = Pick<
  Sources,
  'chain' | 'chainName' | 'clock' | 'explorerUrl' | 'usdc' | 'projectToken' | 'collector' | 'reads' | 'collected'
>;

/** A scripted node, and the sources over it. */
export interface Fixture {
  readonly node: RpcServer;
  readonly sources: ChainSources;
  /** The results of eth_call, by contract and selector. */
  readonly views: Record<string, Record<string, string>>;
  readonly source: { name: string; url: string; retrievedAt: number };
}

/** A new fixture for each test of the file. */
export function useFixture({ timeoutMs = 60_000 } = {}): () => Fixture {
  let current: (Fixture & { chain: OpenChainClient }) | undefined;
  beforeEach(async () => {
    current = await createFixture(timeoutMs);
  });
  afterEach(async () => {
    await current?.chain.close();
    await current?.node.stop();
  });
  return () => {
    if (!current) throw new Error('only inside a test');
    return current;
  };
}

async function createFixture(timeoutMs: number) {
  const views = standardViews();
  const node = await startRpcServer({
    eth_blockNumber: () => hex(1000),
    eth_getBlockByNumber: ([block]) => header(block === 'latest' ? 1000 : Number(block)),
    eth_feeHistory: ([count, newest]) => ({
      oldestBlock: hex(Number(newest) - Number(count) + 1),
      baseFeePerGas: Array.from({ length: Number(count) + 1 }, () => hex(20_000_000_000)),
    }),
    eth_getBalance: () => hex(1_234_567_890_000_000_001n),
    eth_getTransactionCount: () => '0x7',
    eth_getCode: () => '0x',
    eth_getStorageAt: () => number(0n),
    eth_call: (params) => {
      const [{ to, data }] = params as [{ to: string; data: string }];
      return views[to]?.[data.slice(0, 10)] ?? '0x';
    },
  });
  const chain = openClient({ rpcUrls: [`${node.url}/key`], chainId: 5042, timeoutMs });
  const clock = createManualClock(NOW_SECONDS * 1000 + 999);
  const reads = createChainReads(emptyChainDatabase());
  const sources: ChainSources = {
    chain,
    chainName: { name: 'Arc', isPlayMoney: false },
    explorerUrl: 'https://explorer.test',
    clock,
    usdc: USDC,
    projectToken: null,
    collector: NO_COLLECTOR,
    reads,
    collected: SETTINGS,
  };
  const source = { name: 'JSON-RPC of eip155:5042', url: node.url, retrievedAt: NOW_SECONDS };
  return { node, chain, views, sources, source };
}

function standardViews(): Record<string, Record<string, string>> {
  return {
    [USDC]: {
      '0x70a08231': number(1_234_567n),
      '0x06fdde03': text('USDC'),
      '0x95d89b41': text('USDC'),
      '0x313ce567': number(6n),
    },
    [TOKEN]: {
      '0x06fdde03': text('Token'),
      '0x95d89b41': text('TKN'),
      '0x313ce567': number(18n),
      '0x18160ddd': number(10n ** 21n),
      '0x70a08231': number(5n * 10n ** 17n),
    },
  };
}

interface Runnable {
  run(params: unknown, sources: ChainSources, signal: AbortSignal): Promise<unknown>;
  result: { parse(value: unknown): unknown };
}

const signal = new AbortController().signal;

/** Runs an endpoint as the routes do: its reply must match its own schema. */
export async function run(
  endpoint: Runnable,
  sources: ChainSources,
  params: unknown = {},
): Promise<Record<string, unknown>> {
  return endpoint.result.parse(await endpoint.run(params, sources, signal)) as Record<string, unknown>;
}
