import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { inTurns, startCheckout } from './checkouts.ts';
import { cpuMsOf, median, type Subject } from './lib.ts';
import { type Measure, measurePaid, SECONDS, type Seller } from './paid-load.ts';
import { readChallenge } from './payments.ts';

const ROUNDS: readonly (readonly [buyers: number, rounds: number])[] = [
  [1, 3],
  [64, 3],
  [512, 3],
];

interface Measured extends Measure {
  /** Processor time of the service for a call, in milliseconds. */
  readonly cpuMs: number;
  /** Requests to each provider for a settled payment; empty where the service does not count them. */
  readonly requests: readonly number[];
}

interface Compared {
  readonly seller: Seller;
  readonly service: Subject;
  readonly folder: string;
}

/** Measures this checkout beside another one (`--before FOLDER`) with two RPC providers, on one chain, in one run. */
export async function benchPaidBefore(before: string): Promise<void> {
  const network = await startEmbeddedNetwork();
  const compared: Compared[] = [];
  try {
    compared.push(
      await open(network, 'before', resolve(before), 4112),
      await open(network, 'after', process.cwd(), 4113),
    );
    console.log(`paid calls with two RPC providers, medians of interleaved rounds of ${SECONDS} s`);
    console.log('buyers  checkout   calls/s  mean ms   p50 ms   p99 ms  cpu ms/call  requests/payment by provider');
    for (const [buyers, rounds] of ROUNDS) {
      const results = new Map<string, Measured[]>();
      for (let round = 0; round < rounds; round++)
        await inTurns(compared, round, async (one) => {
          results.set(one.seller.name, [...(results.get(one.seller.name) ?? []), await measure(network, one, buyers)]);
        });
      for (const [name, measured] of [...results].sort().reverse()) console.log(rowOf(buyers, name, measured));
    }
  } finally {
    for (const { service, folder } of compared) {
      await service.stop();
      rmSync(folder, { recursive: true, force: true });
    }
    await network.stop();
  }
}

async function open(network: EmbeddedNetwork, name: string, checkout: string, port: number): Promise<Compared> {
  const relayer = createAccount();
  await network.fundNative(relayer.address, 10n ** 21n);
  const folder = mkdtempSync(join(tmpdir(), `percall-bench-${name}-`));
  const service = await startCheckout(checkout, port, '/readyz', {
    ...embeddedEnvironment(network),
    PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
    RPC_URLS: [network.rpcUrl, network.rpcUrl.replace('127.0.0.1', 'localhost')].join(),
    WS_URLS: network.wsUrl,
    RELAYER_PRIVATE_KEY: relayer.privateKey,
    RELAYER_DAILY_GAS_USDC: '1000000',
    DATA_DIR: folder,
    LOG_LEVEL: 'warn',
    PAYER_MAX_OPEN: '0',
  });
  const url = `${service.origin}/v1/paid/fees/estimate`;
  const seller = { name, urls: [url], relayer: relayer.address.toLowerCase(), challenge: await readChallenge(url) };
  return { seller, service, folder };
}

async function measure(network: EmbeddedNetwork, { seller, service }: Compared, buyers: number): Promise<Measured> {
  const [cpu, asked, settled] = [cpuMsOf(service.pid), await requestsOf(service), await settledOf(service)];
  const result = await measurePaid(network, seller, buyers);
  const paid = (await settledOf(service)) - settled;
  const now = await requestsOf(service);
  return {
    ...result,
    cpuMs: (cpuMsOf(service.pid) - cpu) / paid,
    requests: now.map((count, at) => (count - (asked[at] ?? 0)) / paid),
  };
}

async function metric(service: Subject, pattern: RegExp): Promise<number[]> {
  const text = await (await fetch(`${service.origin}/metrics`)).text();
  return [...text.matchAll(pattern)].map(([, value]) => Number(value));
}

const requestsOf = (service: Subject) => metric(service, /^rpc_requests_total\{[^}]*\} (\d+)/gm);

async function settledOf(service: Subject): Promise<number> {
  const [settled = 0] = await metric(
    service,
    /^payment_moves_total\{[^}]*rail="usdc"[^}]*state="settled"[^}]*\} (\d+)/gm,
  );
  return settled;
}

function rowOf(buyers: number, name: string, measured: readonly Measured[]): string {
  const of = (key: 'perSecond' | 'mean' | 'p50' | 'p99' | 'cpuMs') => median(measured.map((one) => one[key]));
  const requests = measured[0]?.requests.map((_, at) =>
    median(measured.map((one) => one.requests[at] ?? 0)).toFixed(2),
  );
  return [
    String(buyers).padStart(6),
    ` ${name.padEnd(8)}`,
    of('perSecond').toFixed(1).padStart(8),
    of('mean').toFixed(0).padStart(8),
    of('p50').toFixed(0).padStart(8),
    of('p99').toFixed(0).padStart(8),
    of('cpuMs').toFixed(3).padStart(11),
    `  ${requests?.join(' ') ?? ''}`,
  ].join(' ');
}
