import { Counter, Gauge, type Registry } from 'prom-client';
import { UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Common } from '../../lib/common.ts';
import { boundedMap } from '../../lib/limits/count.ts';
import { type Ask, chainBusy, createAsk, createRankQueue, type RankQueue, RECHECK_MS } from './failover.ts';
import {
  type Allowance,
  createProvider,
  createProviderPool,
  type PooledProvider,
  type ProviderPool,
} from './providers.ts';
import { type Agreed, createAgreedHead, createTrust, type ProviderNotes, type Trust } from './trust.ts';
import { type Rank, type RpcCall, type RpcOptions, type RpcOutcome, WAIT_MS } from './wire.ts';
import { type AskWitnesses, askOne, createWitnesses, oneAHost } from './witnesses.ts';

// JSON-RPC over the configured providers, because an error of one would end a sale. Their metrics stand at the end.

/**
 * A provider is asked once its chain id was checked; the next when it fails, limits us, or lacks method or block.
 * `request` throws RpcError for a call that every node would refuse; all throw UpstreamFailed (502) without an answer,
 * and Unavailable (503, `chain_busy`) without allowance in the rank's WAIT_MS (`settle`: after asking everyone).
 * A raw transaction may reach several nodes: "already known" may be the answer to our own.
 */
export interface ChainClient {
  readonly chainId: number;
  /** Scheme and host of the first provider. The path is left out: it may hold a key. */
  readonly publicUrl: string;
  request<T>(method: string, params: readonly unknown[], options?: RpcOptions): Promise<T>;
  /** Resolves when a request of this rank may be sent. Rejects with the signal's reason. */
  ready(rank: Rank, signal?: AbortSignal): Promise<void>;
  /** Estimated for all providers together. Infinite while the limit of one is unknown. */
  requestsPerSecond(): number;
  /** Outcomes in the calls' order. Each 100 calls are one HTTP request. */
  batch(calls: readonly RpcCall[], options?: RpcOptions): Promise<RpcOutcome[]>;
  /** Asks every provider, because one may not pass a transaction on. Reports nothing. */
  everywhere(calls: readonly RpcCall[], options?: RpcOptions): Promise<void>;
  /** Asks one provider of each host for at most 100 calls. Rejects when nobody answers. */
  each(calls: readonly RpcCall[], options?: RpcOptions): Promise<readonly (readonly RpcOutcome[])[]>;
  readonly agreed: Agreed;
}

export interface ChainClientOptions {
  /** In the order in which they are tried; at least one. */
  readonly rpcUrls: readonly string[];
  readonly chainId: number;
  /** A provider with another block 0 is excluded. One that has pruned it is accepted. */
  readonly genesisHash?: `0x${string}` | undefined;
  /** For each provider, from a request's start to the last byte of its answer. */
  readonly timeoutMs: number;
  readonly onRequest?: (host: string) => void;
  readonly onContradiction?: (host: string) => void;
}

export interface OpenChainClient extends ChainClient {
  /** In the URLs' order, for requests to one provider without this client. */
  readonly allowances: readonly Allowance[];
  readonly trust: Trust;
  /** Watches the providers until `close`; `notes` keep who is believed. Resolves after a round. Never rejects. */
  watch(notes?: ProviderNotes): Promise<void>;
  /** Rejects unless at least one provider serves the chain. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Arc's node refuses longer ones: -32600, "batch size exceeds limit of 100". */
export const MAX_BATCH = 100;

/** Sends nothing before the first call. */
export function createChainClient(common: Common, options: ChainClientOptions): OpenChainClient {
  const { clock } = common;
  const { chainId, timeoutMs } = options;
  const providers = options.rpcUrls.map((url) => createProvider(url, timeoutMs));
  const [first] = providers;
  if (first === undefined) throw new Error('a chain client needs at least one RPC URL');
  const witnesses = new Set(providers.map(({ host }) => host)).size;
  const trust = createTrust(common, options.onContradiction);
  const wanted = { chainId, genesisHash: options.genesisHash };
  const pool = createProviderPool(common, providers, wanted, trust.isApart, options.onRequest);
  const queue = createRankQueue(pool, clock);
  const ask = openAsk(witnesses, createAsk(pool, queue, clock), createWitnesses(clock, pool, queue, trust));
  const agreed = createAgreedHead(common, pool, trust, ask);

  async function request<T>(method: string, params: readonly unknown[], rpc: RpcOptions = {}): Promise<T> {
    const [outcome] = await ask([{ method, params }], rpc);
    if (outcome === undefined) throw new UpstreamFailed('chain', 'no answer');
    if ('error' in outcome) throw outcome.error;
    return outcome.result as T;
  }

  return {
    chainId,
    publicUrl: first.origin,
    allowances: pool.entries.map(({ allowance }) => allowance),
    trust,
    agreed,
    watch(notes) {
      if (notes) trust.keepIn(notes);
      return agreed.start();
    },
    request,
    async batch(calls, rpc = {}) {
      if (calls.length === 0) return [];
      if (calls.length <= MAX_BATCH) return ask(calls, rpc);
      const parts = Array.from({ length: Math.ceil(calls.length / MAX_BATCH) }, (_, part) =>
        ask(calls.slice(part * MAX_BATCH, (part + 1) * MAX_BATCH), rpc),
      );
      return (await Promise.all(parts)).flat();
    },
    ready: (rank, signal) => queue.untilAllowed(rank, Number.POSITIVE_INFINITY, signal).then(() => {}),
    requestsPerSecond: () => pool.inOrder().reduce((sum, { allowance }) => sum + allowance.rate(), 0),
    async each(calls, rpc = {}) {
      const isLone = agreed.witnesses < 2;
      return isLone ? [await ask(calls, { ...rpc, fromOneProvider: true })] : askEach(clock, pool, queue, calls, rpc);
    },
    async everywhere(calls, { signal } = {}) {
      await Promise.allSettled(pool.inOrder().map((entry) => pool.call(entry, calls, signal)));
    },
    async check() {
      if (!(await pool.check())) throw new UpstreamFailed('chain', `no provider answers for chain ${chainId}`);
    },
    async close() {
      agreed.stop();
      await Promise.all(providers.map((provider) => provider.close()));
    },
  };
}

function openAsk(witnesses: number, askInOrder: Ask, askWitnesses: AskWitnesses): Ask {
  if (witnesses < 2) return askInOrder;
  return (calls, rpc) =>
    rpc.statements ? askWitnesses({ calls, statements: rpc.statements, rpc }) : askInOrder(calls, rpc);
}

/** Asks each host alone, again within the rank's wait where it limits us; a settlement once more after that. */
async function askEach(
  clock: Clock,
  pool: ProviderPool,
  queue: RankQueue,
  calls: readonly RpcCall[],
  rpc: RpcOptions,
): Promise<readonly (readonly RpcOutcome[])[]> {
  const { rank = 'sale', signal } = rpc;
  const until = clock.nowMs() + WAIT_MS[rank];
  if (!(await queue.untilAllowed(rank, WAIT_MS[rank], signal)) && rank !== 'settle') throw chainBusy();
  const question = { calls, statements: () => [], rpc };
  const askHost = async (entry: PooledProvider): Promise<readonly RpcOutcome[] | null> => {
    for (;;) {
      const isLate = clock.nowMs() >= until;
      const mayAsk = entry.allowance.free() >= 1 || (isLate && rank === 'settle');
      const answered = mayAsk ? await askOne(pool, entry, question) : 'limited';
      if (answered !== 'limited') return answered?.outcomes ?? null;
      if (isLate) return null;
      await clock.sleep(RECHECK_MS, signal);
    }
  };
  const answers = await Promise.all(oneAHost(pool.inOrder()).map(askHost));
  const given = answers.filter((outcomes) => outcomes !== null);
  if (given.length === 0) throw new UpstreamFailed('chain', 'no provider answered');
  return given;
}

/** Gives this rank to each request that names none. */
export function ranked(chain: ChainClient, rank: Rank): ChainClient {
  return {
    ...chain,
    request: (method, params, options) => chain.request(method, params, { rank, ...options }),
    agreed: { ...chain.agreed, head: (options) => chain.agreed.head({ rank, ...options }) },
    each: (calls, options) => chain.each(calls, { rank, ...options }),
    batch: (calls, options) => chain.batch(calls, { rank, ...options }),
  };
}

interface ChainCache<T> {
  get(key: string, block: number): T | undefined;
  set(key: string, block: number, value: T): void;
}

/** One bounded cache a client: two chains in one process never mix. */
export function createChainCache<T>(keepBlocks: number, maxEntries: number): (chain: ChainClient) => ChainCache<T> {
  const caches = new WeakMap<ChainClient, ChainCache<T>>();
  return (chain) => {
    const cache = caches.get(chain) ?? newCache<T>(keepBlocks, maxEntries);
    caches.set(chain, cache);
    return cache;
  };
}

function newCache<T>(keepBlocks: number, maxEntries: number): ChainCache<T> {
  const entries = boundedMap<string, { block: number; value: T }>(maxEntries);
  return {
    get(key, block) {
      const entry = entries.peek(key);
      return entry !== undefined && Math.abs(block - entry.block) < keepBlocks ? entry.value : undefined;
    },
    set(key, block, value) {
      entries.set(key, { block, value });
    },
  };
}

type RpcCounters = Required<Pick<ChainClientOptions, 'onRequest' | 'onContradiction'>>;

/** By host: a URL's path may hold a key. Contradictions begin at 0: Prometheus sees no increase from nothing. */
export function countRpc(registry: Registry, rpcUrls: readonly string[]): RpcCounters {
  const [labelNames, registers] = [['provider'], [registry]];
  const requests = new Counter({
    name: 'rpc_requests_total',
    help: 'HTTP requests to each RPC provider, those of the collector’s probe apart',
    labelNames,
    registers,
  });
  const contradictions = new Counter({
    name: 'rpc_contradictions_total',
    help: 'Answers of a provider that two others contradicted about the same block',
    labelNames,
    registers,
  });
  for (const url of rpcUrls) contradictions.inc({ provider: new URL(url).host }, 0);
  return {
    onRequest: (provider) => requests.inc({ provider }),
    onContradiction: (provider) => contradictions.inc({ provider }),
  };
}

/** Nothing with a lone provider. */
export function publishAgreement(registry: Registry, { agreed }: Pick<OpenChainClient, 'agreed'>): void {
  if (agreed.witnesses < 2) return;
  const registers = [registry];
  new Gauge({
    name: 'rpc_provider_ahead_blocks',
    help: 'Head of a provider less the head that two providers have reached; below zero where it is behind',
    labelNames: ['provider'],
    registers,
    collect() {
      this.reset();
      for (const { host, aheadBlocks } of agreed.providers())
        if (aheadBlocks !== null) this.set({ provider: host }, aheadBlocks);
    },
  });
  new Gauge({
    name: 'rpc_provider_trusted',
    help: '0 while two other providers contradict this one, or it is far from the agreed head, or does not answer',
    labelNames: ['provider'],
    registers,
    collect() {
      for (const { host, isPresent, isFar, isApart } of agreed.providers())
        this.set({ provider: host }, isPresent && !isFar && !isApart ? 1 : 0);
    },
  });
  new Gauge({
    name: 'rpc_agreement',
    help: '1 while two providers can confirm a payment; at 0 no sale over the chain begins',
    registers,
    collect() {
      this.set(agreed.whyUnconfirmed() === null ? 1 : 0);
    },
  });
}
