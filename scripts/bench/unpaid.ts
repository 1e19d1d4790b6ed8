import autocannon from 'autocannon';
import { startEmbeddedNetwork } from '../embedded/network.ts';
import { embeddedEnvironment } from '../embedded/serve.ts';
import { median, startSubject } from './lib.ts';

const ROUNDS = 5;
const SECONDS = 4;
const CONNECTIONS = 50;

/** Requests a second of the unpaid 402 and a free route, beside bare Fastify in the same run, rounds interleaved. */
export async function benchUnpaid(): Promise<void> {
  const network = await startEmbeddedNetwork();
  const bare = await startSubject('scripts/bench/servers/bare.ts', 4101, '/hello', {});
  const env = { ...embeddedEnvironment(network), PUBLIC_ORIGIN: 'http://127.0.0.1:4102', LOG_LEVEL: 'warn' };
  const limits = { RATE_LIMIT_FREE_PER_MINUTE: '1000000000', RATE_LIMIT_PRICED_PER_MINUTE: '1000000000' };
  const ours = await startSubject('src/server.ts', 4102, '/readyz', { ...env, ...limits });
  const cases = [
    ['bare Fastify', `${bare.origin}/hello`, 200],
    ['unpaid 402', `${ours.origin}/v1/paid/fees/estimate`, 402],
    ['free route', `${ours.origin}/v1/fees/estimate`, 200],
  ] as const;
  const rates = new Map<string, number[]>(cases.map(([name]) => [name, []]));
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [name, url, status] of cases) {
        const result = await autocannon({ url, connections: CONNECTIONS, duration: round === 0 ? 2 : SECONDS });
        const wrong = Object.entries(result.statusCodeStats ?? {}).filter(([code]) => Number(code) !== status);
        if (result.errors > 0 || wrong.length > 0)
          throw new Error(`${name}: ${JSON.stringify(wrong)}, ${result.errors} errors`);
        // Round 0 warms up.
        if (round > 0) rates.get(name)?.push(result.requests.average);
      }
    }
    const yardstick = median(rates.get('bare Fastify') ?? []);
    console.log(
      `requests/s, median of ${ROUNDS} interleaved rounds of ${SECONDS} s, ${CONNECTIONS} connections, rate limits counting`,
    );
    for (const [name, samples] of rates) {
      const rate = median(samples);
      console.log(`${name.padEnd(14)} ${rate.toFixed(0).padStart(8)}   ${(rate / yardstick).toFixed(2)} of bare`);
    }
  } finally {
    await Promise.all([bare.stop(), ours.stop()]);
    await network.stop();
  }
}
