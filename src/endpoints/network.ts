import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { type Header, headerCall, readHeader, readHeaderOrNull, readLatestHeader } from '../chain/block.ts';
import { secondsSince } from '../lib/clock.ts';
import { sourceSchema } from '../lib/service.ts';
import { asOfBlock, chainSource, EXAMPLE_CHAIN_SOURCE, field, roundTo } from './fields.ts';
import {
  type Collected,
  collectedUntil,
  EXAMPLE_PROVENANCE,
  keptUntilWritten,
  lastHours,
  liveOrCollected,
  provenance,
  provenanceFields,
} from './freshness.ts';
import type { Sources } from './sources.ts';

// The chain as a whole (`/network`, `/activity`), and how well this service follows it (`/health`).

/** Header times are whole seconds, which two blocks of Arc share. Over 200 blocks the mean errs by at most 0.005 s. */
const BLOCK_TIME_SPAN = 200;
/** Ten seconds of half-second blocks: recent, and a moderate batch. */
const SAMPLE_BLOCKS = 20;

const nothingYet = 'null before the first block is collected';

type NetworkSources = Pick<Sources, 'chain' | 'chainName' | 'clock' | 'collector' | 'reads'>;

export const network = defineEndpoint({
  path: '/network',
  access: 'free',
  label: 'Network',
  summary:
    'The chain’s name, head block, chain id, genesis, block time, transactions per second and how far behind the ' +
    'collector is.',
  notFor: 'single blocks, or for an address’s balance',
  tags: null,
  ofChain: true,
  params: z.object({}),
  result: z.strictObject({
    name: field.text('The chain’s name for people'),
    playMoney: field.boolean('Whether the chain’s coins are worth nothing, as on a demo’s local chain'),
    chainId: z.int().meta({ description: 'EIP-155 chain id' }),
    genesis: field.objectOrNull('Block 0; null when the node no longer has it, or does not answer', {
      hash: field.hash('Hash of block 0'),
      at: field.at('Time of block 0'),
    }),
    head: field.object('The newest block; while the chain does not answer the newest that a provider reported before', {
      number: z.int().nonnegative(),
      hash: field.hash('Hash of the newest block'),
      at: field.at('Time of the newest block'),
      ageSeconds: field.count('Seconds since that time by our clock, never negative'),
    }),
    blocksCollected: field.count(
      'Blocks that the collector has read whole, those included that it keeps as hourly sums',
    ),
    firstCollected: field.integerOrNull(`First block that the collector has read whole; ${nothingYet}`),
    lagBlocks: field.integerOrNull(`Blocks that the collector is behind the head; ${nothingYet}`),
    lagSeconds: field.numberOrNull(`The same in seconds of the chain's time; ${nothingYet}`),
    blockTimeSeconds: field.numberOrNull(
      `Mean over the last ${BLOCK_TIME_SPAN} blocks, or as many as there are; null when they share one timestamp`,
    ),
    txPerSecond: field.numberOrNull(
      `Transactions in the last ${SAMPLE_BLOCKS} blocks, by the mean block time; null while that is unknown`,
    ),
    asOfBlock,
    freshness: field.object(
      `The head is read live as long as the chain answers; the rest is of the collector, ${nothingYet}`,
      {
        head: z.int().nonnegative(),
        collected: z.int().nullable(),
        lagBlocks: z.int().nullable(),
        lagSeconds: z.number().nullable(),
      },
    ),
    source: sourceSchema,
  }),
  cacheMs: 5000,
  example: {
    params: {},
    result: {
      name: 'Arc',
      playMoney: false,
      chainId: 5042,
      genesis: { hash: `0x${'5a'.repeat(32)}`, at: 1778544000 },
      head: { number: 32250000, hash: `0x${'7c'.repeat(32)}`, at: 1795199400, ageSeconds: 1 },
      blocksCollected: 518_400,
      firstCollected: 31731601,
      lagBlocks: 0,
      lagSeconds: 0,
      blockTimeSeconds: 0.505,
      txPerSecond: 14.257,
      asOfBlock: 32250000,
      freshness: EXAMPLE_PROVENANCE.freshness,
      source: EXAMPLE_CHAIN_SOURCE,
    },
  },
  async run(_params, sources: NetworkSources, signal) {
    const { chain, chainName, clock, collector } = sources;
    const { head, ...measured } = await liveOrCollected(() => readLive(chain, signal), readCollected(sources), clock);
    const { collected, firstCollected, blocksCollected } = collector.status();
    const lag = {
      lagBlocks: collected && Math.max(head.number - collected.number, 0),
      lagSeconds: collected && Math.max(head.at - collected.at, 0),
    };
    const { genesis, blockTimeSeconds, txPerSecond, isLive } = measured;
    return {
      name: chainName.name,
      playMoney: chainName.isPlayMoney,
      chainId: chain.chainId,
      genesis,
      head: { number: head.number, hash: head.hash, at: head.at, ageSeconds: secondsSince(head.at, clock) },
      blocksCollected,
      firstCollected,
      ...lag,
      blockTimeSeconds,
      txPerSecond,
      asOfBlock: head.number,
      freshness: { head: head.number, collected: collected?.number ?? null, ...lag },
      source: isLive ? chainSource(chain, clock) : provenance(sources).source,
    };
  },
});

interface Measured {
  readonly head: { readonly number: number; readonly hash: string; readonly at: number };
  readonly genesis: { readonly hash: string; readonly at: number } | null;
  readonly blockTimeSeconds: number | null;
  readonly txPerSecond: number | null;
  readonly isLive: boolean;
}

async function readLive(chain: Sources['chain'], signal: AbortSignal): Promise<Measured> {
  const head = await readLatestHeader(chain, { signal });
  // Without genesis, which may be much older than the second block.
  const spanStart = Math.max(head.number - BLOCK_TIME_SPAN, Math.min(head.number, 1));
  const sampled = sampleBefore(head.number);
  const outcomes = await chain.batch([0, spanStart, ...sampled].map(headerCall), { signal });
  const genesis = readHeaderOrNull(outcomes[0], 0);
  const blockTime = meanBlockTime(readHeader(outcomes[1], spanStart), head);
  const recent = [head, ...sampled.map((block, at) => readHeader(outcomes[2 + at], block))];
  const counts = recent.map(({ transactionCount }) => transactionCount);
  return {
    head,
    genesis: genesis && { hash: genesis.hash, at: genesis.at },
    ...rates(counts, blockTime),
    isLive: true,
  };
}

/** The sample's blocks before the head, without genesis. */
function sampleBefore(head: number): number[] {
  return Array.from({ length: SAMPLE_BLOCKS - 1 }, (_, back) => head - 1 - back).filter((block) => block > 0);
}

function meanBlockTime(first: Header, head: Header): number | null {
  return head.at > first.at ? (head.at - first.at) / (head.number - first.number) : null;
}

/** What the collector has while the chain gives no answer; null before it has seen a head. */
function readCollected({ collector, reads }: NetworkSources): Measured | null {
  const { head, blockTimeSeconds } = collector.status();
  return (
    head && { head, genesis: null, ...rates(reads.recentTransactions(SAMPLE_BLOCKS), blockTimeSeconds), isLive: false }
  );
}

/** Header times of whole seconds do not give more than three decimals. */
const RATE_DECIMALS = 3;

function rates(transactions: readonly number[], blockTime: number | null) {
  if (blockTime === null) return { blockTimeSeconds: null, txPerSecond: null };
  const total = transactions.reduce((sum, count) => sum + count, 0);
  const txPerSecond =
    transactions.length === 0 ? null : roundTo(RATE_DECIMALS, total / (transactions.length * blockTime));
  return { blockTimeSeconds: roundTo(RATE_DECIMALS, blockTime), txPerSecond };
}

export const activity = defineEndpoint({
  path: '/activity',
  access: 'free',
  label: 'Activity',
  summary: 'Blocks, transactions and operations by type for each of the last 24 hours.',
  notFor: 'the transactions of one address',
  tags: null,
  ofChain: true,
  params: z.object({}),
  result: z.strictObject({
    hours: field.list(
      'The last 24 hours of the clock, oldest first, the current one included; hours without a counted block are ' +
        'left out',
      {
        at: field.at('Beginning of the hour'),
        blocks: field.count('Blocks whose transactions were counted'),
        transactions: field.count('Transactions in them'),
        operations: field.object('The transactions by what they do, as their own fields show it', {
          deploy: field.count('Without a recipient'),
          nativeTransfer: field.count('Without input'),
          tokenTransfer: field.count('Calls of a transfer of ERC-20 or EIP-3009'),
          contractCall: field.count('All others'),
        }),
        complete: field.boolean('true: the hour is over and every block of it was counted'),
      },
    ),
    ...provenanceFields,
  }),
  ...keptUntilWritten,
  example: {
    params: {},
    result: {
      hours: [
        {
          at: 1795194000,
          blocks: 7186,
          transactions: 51_240,
          operations: { deploy: 214, nativeTransfer: 9120, tokenTransfer: 17_406, contractCall: 24_500 },
          complete: true,
        },
      ],
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Collected) {
    const until = collectedUntil(sources);
    return {
      hours: lastHours(sources, until)
        .filter(({ counted }) => counted > 0)
        .map((hour) => ({
          at: hour.at,
          blocks: hour.counted,
          transactions: hour.transactions,
          operations: {
            deploy: hour.deploys,
            nativeTransfer: hour.nativeTransfers,
            tokenTransfer: hour.tokenTransfers,
            contractCall: hour.contractCalls,
          },
          complete: hour.complete,
        })),
      ...provenance(sources),
    };
  },
});

const healthResult = z.strictObject({
  status: z.enum(['ok', 'stalled', 'lagging']).meta({
    description:
      'stalled: no head is known, or it has not moved for longer than the threshold; lagging: nothing is collected ' +
      'yet, or the collector is further behind the head than a threshold; ok: neither. Answered with 503 unless ok',
  }),
  thresholds: z.strictObject({
    stalledSeconds: z.int().positive(),
    lagBlocks: z.int().nonnegative(),
    lagSeconds: z.int().nonnegative(),
  }),
  readings: z.strictObject({
    headMovedSecondsAgo: field.countOrNull('Since a provider showed a higher block than before; null before the first'),
    headCheckedSecondsAgo: field.countOrNull('Since a provider last answered; null before the first in this run'),
    lagBlocks: field.integerOrNull('As in freshness'),
    lagSeconds: field.integerOrNull('As in freshness'),
    windowCollectedShare: z.number().meta({
      description: 'Share of the window of past blocks that is collected, 0 to 1; does not count towards the status',
    }),
    windowCollected: z.number().meta({ description: 'The same, under its old name' }),
  }),
  ...provenanceFields,
});

export const health = defineEndpoint({
  path: '/health',
  access: 'free',
  label: 'Health',
  summary: 'Service health; 503 with the same body when the collector is stalled or lagging behind the chain head.',
  notFor: 'the health of other services',
  tags: null,
  ofChain: true,
  params: z.object({}),
  result: healthResult,
  reportsFault: ({ status }) => status !== 'ok',
  example: {
    params: {},
    result: {
      status: 'ok',
      thresholds: { stalledSeconds: 30, lagBlocks: 60, lagSeconds: 30 },
      readings: {
        headMovedSecondsAgo: 0,
        headCheckedSecondsAgo: 0,
        lagBlocks: 0,
        lagSeconds: 0,
        windowCollectedShare: 1,
        windowCollected: 1,
      },
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Pick<Collected, 'chain' | 'clock' | 'collector' | 'collected'>) {
    const { clock, collector, collected } = sources;
    const { headAdvancedMs, headCheckedMs, head, backfill } = collector.status();
    const current = provenance(sources);
    const { lagBlocks, lagSeconds } = current.freshness;
    const since = (ms: number | null) => (ms === null ? null : Math.max(Math.floor((clock.nowMs() - ms) / 1000), 0));
    const windowCollected = roundTo(4, backfill.share);
    const readings = {
      headMovedSecondsAgo: since(headAdvancedMs),
      headCheckedSecondsAgo: since(headCheckedMs),
      lagBlocks,
      lagSeconds,
      windowCollectedShare: windowCollected,
      windowCollected,
    };
    const status = statusOf(head !== null, readings, collected.health);
    return { status, thresholds: { ...collected.health }, readings, ...current };
  },
});

/** Stalled comes before lagging: a lag means nothing while no provider reports the head. */
function statusOf(
  hasHead: boolean,
  { headMovedSecondsAgo, lagBlocks, lagSeconds }: z.output<typeof healthResult>['readings'],
  limits: z.output<typeof healthResult>['thresholds'],
): z.output<typeof healthResult>['status'] {
  if (!hasHead || headMovedSecondsAgo === null || headMovedSecondsAgo > limits.stalledSeconds) return 'stalled';
  if (lagBlocks === null || lagSeconds === null) return 'lagging';
  return lagBlocks > limits.lagBlocks || lagSeconds > limits.lagSeconds ? 'lagging' : 'ok';
}
