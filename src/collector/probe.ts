import { type Allowance, createProvider, type Provider } from '../chain/rpc/providers.ts';
import { type Answer, classifyError, type FailureKind, ProviderFailure, type RpcCall } from '../chain/rpc/wire.ts';
import type { Common } from '../lib/common.ts';
import { createLoop } from '../lib/tasks.ts';
import type { Probe, ProbeError, ProbeWrites } from './store/probes.ts';

// Asks each RPC endpoint for its newest block, for rpc/health. The chain client would ask only the best.

interface ProbeOptions {
  readonly rpcUrls: readonly string[];
  /** In the same order: a probe counts as a request of its provider. */
  readonly allowances: readonly Allowance[];
  readonly chainId: number;
  readonly writes: ProbeWrites;
  /** From a round's start to the next, which follows a longer round at once. */
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

interface RpcProbe {
  /** Never rejects. */
  round(): Promise<void>;
  start(): void;
  /** After it has resolved the database may be closed. */
  stop(): Promise<void>;
}

/** rpc/health says how available an endpoint was over a day. */
const KEEP_MS = 24 * 3_600_000;

/** One request an endpoint and round: the first, and each after a failure but a limit, with the chain id. */
export function createProbe({ clock, log }: Common, options: ProbeOptions): RpcProbe {
  const { rpcUrls, allowances, chainId, writes, intervalMs, timeoutMs } = options;
  const names = nameEndpoints(rpcUrls).map(({ name }) => name);
  const endpoints = rpcUrls.map((url, at) =>
    createEndpoint(names[at] ?? '', createProvider(url, timeoutMs), chainId, allowances[at]),
  );

  async function round(): Promise<void> {
    const { signal } = loop;
    const atMs = clock.nowMs();
    try {
      const probes = await Promise.all(endpoints.map((endpoint) => endpoint.probe(signal)));
      if (!signal.aborted) writes.record(atMs, probes, atMs - KEEP_MS);
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'a round of RPC probes could not be stored');
    }
  }

  const loop = createLoop(clock, async () => {
    const next = clock.nowMs() + intervalMs;
    await round();
    return next - clock.nowMs();
  });

  return {
    round,
    start: loop.start,
    async stop() {
      await loop.stop(new Error('the probe stops'));
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    },
  };
}

/** As it may be published: scheme and host only, because the path may hold a key. */
interface ProbedEndpoint {
  readonly name: string;
  readonly url: string;
}

/** Two endpoints on one host (with different keys) get different names. */
export function nameEndpoints(rpcUrls: readonly string[]): ProbedEndpoint[] {
  const seen = new Map<string, number>();
  return rpcUrls.map((url) => {
    const { host, origin } = new URL(url);
    const times = (seen.get(host) ?? 0) + 1;
    seen.set(host, times);
    return { name: times === 1 ? host : `${host} #${times}`, url: origin };
  });
}

function createEndpoint(name: string, provider: Provider, chainId: number, allowance: Allowance | undefined) {
  let isOurChain = false;

  async function askHead(signal: AbortSignal): Promise<number> {
    allowance?.spend();
    const answers = await provider.call(isOurChain ? [HEAD] : [HEAD, CHAIN_ID], signal);
    const [head, id] = answers.map(readNumber);
    if (!isOurChain && id !== chainId) throw new ProbeFailure('rpcError');
    isOurChain = true;
    return head ?? 0;
  }

  return {
    close: () => provider.close(),
    async probe(signal: AbortSignal): Promise<Probe> {
      try {
        const started = performance.now();
        const head = await askHead(signal);
        const latencyMs = Math.round((performance.now() - started) * 10) / 10;
        return { endpoint: name, ok: true, latencyMs, head, error: null };
      } catch (error) {
        const kind = errorOf(error);
        if (kind === 'rateLimited') allowance?.refused();
        else isOurChain = false;
        return { endpoint: name, ok: false, latencyMs: null, head: null, error: kind };
      }
    },
  };
}

const HEAD: RpcCall = { method: 'eth_blockNumber', params: [] };
const CHAIN_ID: RpcCall = { method: 'eth_chainId', params: [] };

function readNumber(answer: Answer): number {
  if ('error' in answer) {
    throw new ProbeFailure(classifyError(answer.error) === 'rateLimited' ? 'rateLimited' : 'rpcError');
  }
  const { result } = answer;
  // Thirteen hex digits are below 2^53.
  if (typeof result !== 'string' || !/^0x[0-9a-fA-F]{1,13}$/.test(result)) throw new ProbeFailure('rpcError');
  return Number(result);
}

class ProbeFailure extends Error {
  readonly kind: ProbeError;
  constructor(kind: ProbeError) {
    super(kind);
    this.name = 'ProbeFailure';
    this.kind = kind;
  }
}

/** An HTTP status other than 200 is of a server before the RPC; an answer that is not JSON-RPC is the RPC's. */
const KINDS: Record<FailureKind, ProbeError> = {
  timeout: 'timeout',
  rateLimited: 'rateLimited',
  transport: 'transport',
  http: 'transport',
  malformed: 'rpcError',
  wrongChain: 'rpcError',
};

function errorOf(error: unknown): ProbeError {
  if (error instanceof ProbeFailure) return error.kind;
  return error instanceof ProviderFailure ? KINDS[error.kind] : 'transport';
}
