import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { freePort } from '../../dev/child.ts';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { addressOf } from '../../src/lib/secp256k1.ts';
import { percentile, type Subject, startService } from './lib.ts';
import { readChallenge, signPayment } from './payments.ts';

const CALLS = 500;
/** What every fiftieth call asks for, from which call on. All others ask for a page of 100 KB. */
const ODD_EVERY = 50;
const ODD: Readonly<Record<number, string>> = {
  0: 'pdf-bomb',
  3: 'large',
  5: 'pdf',
  7: 'bomb',
  28: 'large',
  30: 'pdf',
};
const LIMITS = { rssMb: 400, p99Ms: 50 };
/** All calls come from one machine, pay from one wallet and ask one host. */
const NO_LIMITS = {
  PAYER_MAX_OPEN: '0',
  PAYER_FAILURES_PER_MINUTE: '0',
  CLIENT_FAILURES_PER_MINUTE: '0',
  WEB_HOST_PER_MINUTE: '0',
};

/**
 * Makes 500 parallel paid extracts of pages of 100 KB, some of 1.5 MB, of PDFs, and of bombs of 300 MB (gzip) and 700 MB (PDF). The service is started as
 * `npm start` starts it. Measures its resident memory by the peak that the kernel keeps, and its main loop's delay by the service's metrics.
 */
export async function benchExtract(): Promise<void> {
  const pages = fork(new URL('./servers/pages.ts', import.meta.url), { stdio: 'inherit' });
  const [pagesPort] = (await once(pages, 'message')) as [number];
  const network = await startEmbeddedNetwork();
  try {
    const port = await freePort();
    const service = await startService(port, '/readyz', {
      ...embeddedEnvironment(network),
      RELAYER_DAILY_GAS_USDC: 'off',
      ...NO_LIMITS,
      PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
      LOG_LEVEL: 'error',
      ALLOW_TEST_HOSTS: `pages.example=127.0.0.1:${pagesPort}`,
    });
    try {
      await measure(service, network);
    } finally {
      await service.stop();
    }
  } finally {
    await network.stop();
    pages.kill();
  }
}

async function measure(service: Subject, network: EmbeddedNetwork): Promise<void> {
  const buy = await buyerOf(service, network);
  // Starts the thread that reads pages.
  await buy('page');
  const beforeMb = memoryMb(service.pid, 'VmRSS');
  // From here on the kernel keeps a new peak, and the metrics a new delay.
  writeFileSync(`/proc/${service.pid}/clear_refs`, '5');
  await readMetrics(service.origin);
  const outcomes = new Map<string, number>();
  const times: number[] = [];
  const started = performance.now();
  await Promise.all(
    Array.from({ length: CALLS }, async (_, n) => {
      const page = ODD[n % ODD_EVERY] ?? 'page';
      const outcome = `${page} ${await buy(`${page}?${n}`)}`;
      times.push(performance.now() - started);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }),
  );
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const metric = await readMetrics(service.origin);
  const peakMb = memoryMb(service.pid, 'VmHWM');
  const [p99Ms, longestMs] = ['p99', 'max'].map((name) => 1000 * metric(`nodejs_eventloop_lag_${name}_seconds`));
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(times, share).toFixed(0));
  console.log(`${CALLS} parallel extracts in ${seconds} s, answers after p50 ${p50} ms, p99 ${p99} ms`);
  const counts = [...outcomes].sort().map(([outcome, count]) => `${outcome}: ${count}`);
  console.log(counts.join(', '));
  console.log(
    `peak resident memory ${peakMb.toFixed(0)} MB (limit ${LIMITS.rssMb}), ${beforeMb.toFixed(0)} MB before; main loop's delay p99 ${p99Ms?.toFixed(1)} ms (limit ${LIMITS.p99Ms}), longest ${longestMs?.toFixed(1)} ms`,
  );
  // Negated, so that a missing figure (NaN) fails too.
  if (!(peakMb <= LIMITS.rssMb && Number(p99Ms) <= LIMITS.p99Ms)) throw new Error('outside the limits');
}

/** Buys the extract of a page of the bench's own host. Resolves to the answer's status. */
async function buyerOf({ origin }: Subject, network: EmbeddedNetwork): Promise<(page: string) => Promise<number>> {
  const urlOf = (page: string) => `${origin}/v1/paid/web/extract?url=http://pages.example/${page}`;
  const challenge = await readChallenge(urlOf('page'));
  const key = Buffer.from(createAccount().privateKey.slice(2), 'hex');
  await network.fundUsdc(addressOf(key), BigInt(challenge.amount) * BigInt(CALLS + 1));
  const dispatcher = new Agent({ connections: CALLS, pipelining: 1, headersTimeout: 120_000 });
  return async (page) => {
    const headers = { 'payment-signature': signPayment(key, challenge) };
    const answer = await request(urlOf(page), { dispatcher, headers });
    await answer.body.text();
    return answer.statusCode;
  };
}

/** A figure of /proc/<pid>/status, in MB of 10^6 bytes. */
function memoryMb(pid: number, name: 'VmRSS' | 'VmHWM'): number {
  const [, kb] = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return (Number(kb) * 1024) / 1e6;
}

/** Reads the service's metrics. Those of the loop's delay cover the time since the last reading. */
async function readMetrics(origin: string): Promise<(name: string) => number> {
  const text = await (await fetch(`${origin}/metrics`)).text();
  return (name) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1]);
}
