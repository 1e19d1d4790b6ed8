import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import autocannon from 'autocannon';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { inTurns, startCheckout } from './checkouts.ts';
import { cpuMsOf, median, type Subject, startService, startSubject, Usage } from './lib.ts';

const ROUNDS = 5;
const SECONDS = 4;
const CONNECTIONS = 50;
/** The headers of the answer itself. Request ids, CORS and rate limits are the service's overhead, which is measured. */
const ANSWER_HEADERS = ['payment-required', 'content-type', 'cache-control', 'etag'];

/** The body and headers that a bare route must send to send as many bytes as one of ours. */
async function twinOf(path: string, url: string) {
  const answer = await fetch(url);
  const headers = Object.fromEntries([...answer.headers].filter(([name]) => ANSWER_HEADERS.includes(name)));
  return { path, status: answer.status, headers, body: await answer.text() };
}

/**
 * Measures requests a second of the unpaid 402 and of a free route, beside bare Fastify, in interleaved rounds of one run. With `--before FOLDER`,
 * beside the service of another checkout.
 */
export async function benchUnpaid([option, before, ...others]: readonly string[] = []): Promise<void> {
  if (option !== undefined) {
    if (option !== '--before' || before === undefined || others.length > 0)
      throw new Usage('usage: unpaid [--before FOLDER]');
    return benchUnpaidBefore(before);
  }
  const network = await startEmbeddedNetwork();
  const ours = await startService(4102, '/readyz', environment(network, 4102));
  const [unpaid, free] = [`${ours.origin}/v1/paid/fees/estimate`, `${ours.origin}/v1/fees/estimate`];
  const twins = [await twinOf('/twin-402', unpaid), await twinOf('/twin-free', free)];
  const bare = await startSubject('scripts/bench/servers/bare.ts', 4101, '/hello', { TWINS: JSON.stringify(twins) });
  const cases = [
    ['bare Fastify, {hello}', `${bare.origin}/hello`, 200, bare.pid],
    ['bare, same 402', `${bare.origin}/twin-402`, 402, bare.pid],
    ['unpaid 402', unpaid, 402, ours.pid],
    ['bare, same free answer', `${bare.origin}/twin-free`, 200, bare.pid],
    ['free route', free, 200, ours.pid],
  ] as const;
  const rates = new Map<string, number[]>(cases.map(([name]) => [name, []]));
  const costs = new Map<string, number[]>(cases.map(([name]) => [name, []]));
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [name, url, status, pid] of cases) {
        const { rate, costUs } = await load(url, status, pid, round);
        // Round 0 warms up.
        if (round === 0) continue;
        rates.get(name)?.push(rate);
        costs.get(name)?.push(costUs);
      }
    }
    report(medians(rates), medians(costs));
  } finally {
    await Promise.all([bare.stop(), ours.stop()]);
    await network.stop();
  }
}

const NO_LIMITS = { RATE_LIMIT_FREE_PER_MINUTE: '1000000000', RATE_LIMIT_PRICED_PER_MINUTE: '1000000000' };

function environment(network: EmbeddedNetwork, port: number): Record<string, string> {
  return {
    ...embeddedEnvironment(network),
    ...NO_LIMITS,
    PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
    LOG_LEVEL: 'warn',
  };
}

/** One round: requests a second, and the server's processor time for one. */
async function load(
  url: string,
  status: number,
  pid: number,
  round: number,
): Promise<{ rate: number; costUs: number }> {
  const spentMs = cpuMsOf(pid);
  const result = await autocannon({ url, connections: CONNECTIONS, duration: round === 0 ? 2 : SECONDS });
  const wrong = Object.entries(result.statusCodeStats ?? {}).filter(([code]) => Number(code) !== status);
  if (result.errors > 0 || wrong.length > 0)
    throw new Error(`${url}: ${JSON.stringify(wrong)}, ${result.errors} errors`);
  return { rate: result.requests.average, costUs: ((cpuMsOf(pid) - spentMs) * 1000) / result.requests.total };
}

/** Measures this checkout beside another one, on one chain, in interleaved rounds of one run. */
async function benchUnpaidBefore(before: string): Promise<void> {
  const network = await startEmbeddedNetwork();
  const compared: { name: string; service: Subject; folder: string }[] = [];
  try {
    for (const [name, checkout, port] of [
      ['before', resolve(before), 4102],
      ['after', process.cwd(), 4103],
    ] as const) {
      const folder = mkdtempSync(join(tmpdir(), `percall-bench-${name}-`));
      const service = await startCheckout(checkout, port, '/readyz', {
        ...environment(network, port),
        DATA_DIR: folder,
      });
      compared.push({ name, service, folder });
    }
    const rates = new Map<string, number[]>();
    const costs = new Map<string, number[]>();
    for (let round = 0; round <= ROUNDS; round++)
      await inTurns(compared, round, async ({ name, service: { origin, pid } }) => {
        for (const [title, path, status] of [
          ['unpaid 402', '/v1/paid/fees/estimate', 402],
          ['free route', '/v1/fees/estimate', 200],
        ] as const) {
          const { rate, costUs } = await load(`${origin}${path}`, status, pid, round);
          if (round === 0) continue;
          const key = `${title}, ${name}`;
          rates.set(key, [...(rates.get(key) ?? []), rate]);
          costs.set(key, [...(costs.get(key) ?? []), costUs]);
        }
      });
    console.log(`requests/s and processor time each, median of ${ROUNDS} interleaved rounds of ${SECONDS} s`);
    for (const [key, all] of [...rates].sort()) {
      const cost = median(costs.get(key) ?? []).toFixed(1);
      console.log(`${key.padEnd(20)} ${median(all).toFixed(0).padStart(7)}   ${cost.padStart(6)} us`);
    }
  } finally {
    for (const { service, folder } of compared) {
      await service.stop();
      rmSync(folder, { recursive: true, force: true });
    }
    await network.stop();
  }
}

function medians(samples: ReadonlyMap<string, readonly number[]>): Map<string, number> {
  return new Map([...samples].map(([name, all]) => [name, median(all)]));
}

/** `costsUs`: the server's own processor time a request, which a busy machine changes less than the rate. */
function report(rates: ReadonlyMap<string, number>, costsUs: ReadonlyMap<string, number>): void {
  const of = (name: string) => rates.get(name) ?? Number.NaN;
  console.log(
    `requests/s, median of ${ROUNDS} interleaved rounds of ${SECONDS} s, ${CONNECTIONS} connections, rate limits on`,
  );
  for (const [name, rate] of rates) {
    const share = (rate / of('bare Fastify, {hello}')).toFixed(2);
    const cost = (costsUs.get(name) ?? Number.NaN).toFixed(1).padStart(5);
    console.log(
      `${name.padEnd(24)} ${rate.toFixed(0).padStart(7)}   ${share} of {hello}   ${cost} us of processor time`,
    );
  }
  console.log(`unpaid 402 ${(of('unpaid 402') / of('bare, same 402')).toFixed(2)} of a bare route that sends as much`);
  console.log(
    `free route ${(of('free route') / of('bare, same free answer')).toFixed(2)} of a bare route that sends as much`,
  );
}
