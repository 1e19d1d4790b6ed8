import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedNetwork } from '../../src/embedded/network.ts';
import { embeddedEnvironment } from '../../src/embedded/serve.ts';
import { median, type Subject, startService } from './lib.ts';

const ROUNDS = 7;
const SECONDS = 4;
const CONNECTIONS = 64;
const FIRST_PORT = 4120;
const SIZES = [1, 2];

interface Measure {
  readonly perSecond: number;
  /** The load generator's own processor use, in cores. */
  readonly generatorCores: number;
}

/**
 * Measures requests a second of the unpaid 402 and of a free route with one process and with two, in interleaved rounds.
 * The load generator is Debian's wrk on one thread, because it shares the cores. A heavier one would leave nothing for a second process.
 */
export async function benchWorkers(): Promise<void> {
  if (spawnSync('wrk', ['-v']).error) {
    console.log('wrk is not installed (apt-get install wrk); nothing was measured');
    return;
  }
  const network = await startEmbeddedNetwork();
  const folder = mkdtempSync(join(tmpdir(), 'percall-bench-workers-'));
  const services: Subject[] = [];
  try {
    for (const size of SIZES) {
      const port = FIRST_PORT + size;
      services.push(
        await startService(port, '/readyz', {
          ...embeddedEnvironment(network),
          RELAYER_DAILY_GAS_USDC: 'off',
          DATA_DIR: join(folder, String(size)),
          PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
          WORKERS: String(size),
          LOG_LEVEL: 'warn',
          RATE_LIMIT_FREE_PER_MINUTE: '1000000000',
          RATE_LIMIT_PRICED_PER_MINUTE: '1000000000',
        }),
      );
    }
    console.log(
      `requests/s, median of ${ROUNDS} interleaved rounds of ${SECONDS} s, ${CONNECTIONS} connections, wrk -t1`,
    );
    console.log('route        WORKERS  requests/s  wrk cores');
    for (const [name, path, status] of [
      ['unpaid 402', '/v1/paid/fees/estimate', 402],
      ['free route', '/v1/fees/estimate', 200],
    ] as const) {
      report(name, compare(services, path, status));
    }
  } finally {
    await Promise.all(services.map((service) => service.stop()));
    await network.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function compare(services: readonly Subject[], path: string, status: number): Measure[][] {
  const measures: Measure[][] = services.map(() => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [at, { origin }] of services.entries()) {
      const measure = load(origin + path, status);
      // Round 0 warms up.
      if (round > 0) measures[at]?.push(measure);
    }
  }
  return measures;
}

/** One run of wrk; throws when an answer had another status. */
function load(url: string, status: number): Measure {
  const command = `time -p wrk -t1 -c${CONNECTIONS} -d${SECONDS}s ${url}`;
  const { stdout, stderr } = spawnSync('bash', ['-c', command], { encoding: 'utf8' });
  const numberAfter = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? Number.NaN);
  const total = numberAfter(stdout, /(\d+) requests in/);
  const refused = numberAfter(stdout, /Non-2xx or 3xx responses: (\d+)/) || 0;
  const wrong = status < 400 ? refused : total - refused;
  if (!(total > 0) || wrong > 0 || /Socket errors/.test(stdout)) throw new Error(`${url}: ${stdout}${stderr}`);
  const cpuSeconds = numberAfter(stderr, /user ([\d.]+)/) + numberAfter(stderr, /sys ([\d.]+)/);
  return {
    perSecond: numberAfter(stdout, /Requests\/sec:\s+([\d.]+)/),
    generatorCores: cpuSeconds / numberAfter(stderr, /real ([\d.]+)/),
  };
}

function report(name: string, measures: readonly Measure[][]): void {
  const rates = measures.map((each) => median(each.map(({ perSecond }) => perSecond)));
  for (const [at, each] of measures.entries()) {
    const cores = median(each.map(({ generatorCores }) => generatorCores)).toFixed(2);
    const rate = (rates[at] ?? Number.NaN).toFixed(0);
    console.log(`${name.padEnd(12)} ${String(SIZES[at]).padStart(7)}  ${rate.padStart(10)}  ${cores.padStart(9)}`);
  }
  const [one = Number.NaN, two = Number.NaN] = rates;
  console.log(`${name}: ${(two / one).toFixed(2)} × with two processes`);
}
