import autocannon from 'autocannon';
import { startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { cpuMsOf, median, startService, startSubject } from './lib.ts';

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

/** Measures requests a second of the unpaid 402 and of a free route, beside bare Fastify, in interleaved rounds of one run. */
export async function benchUnpaid(): Promise<void> {
  const network = await startEmbeddedNetwork();
  const env = { ...embeddedEnvironment(network), PUBLIC_ORIGIN: 'http://127.0.0.1:4102', LOG_LEVEL: 'warn' };
  const limits = { RATE_LIMIT_FREE_PER_MINUTE: '1000000000', RATE_LIMIT_PRICED_PER_MINUTE: '1000000000' };
  const ours = await startService(4102, '/readyz', { ...env, ...limits });
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
        const spentMs = cpuMsOf(pid);
        const result = await autocannon({ url, connections: CONNECTIONS, duration: round === 0 ? 2 : SECONDS });
        const wrong = Object.entries(result.statusCodeStats ?? {}).filter(([code]) => Number(code) !== status);
        if (result.errors > 0 || wrong.length > 0)
          throw new Error(`${name}: ${JSON.stringify(wrong)}, ${result.errors} errors`);
        // Round 0 warms up.
        if (round === 0) continue;
        rates.get(name)?.push(result.requests.average);
        costs.get(name)?.push(((cpuMsOf(pid) - spentMs) * 1000) / result.requests.total);
      }
    }
    report(medians(rates), medians(costs));
  } finally {
    await Promise.all([bare.stop(), ours.stop()]);
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
