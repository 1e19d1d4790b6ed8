import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startService } from './lib.ts';

const PORT = 4196;
/** How long the service rests after its collection, before it is measured. Nobody forces a garbage collection in it. */
const REST_MS = 30_000;

/**
 * Prints the resident memory of the service, started as `npm start` starts it, after it has collected all blocks of a node. It has no budget of requests,
 * so that a day passes in a minute. The parts are those of /proc/<pid>/smaps.
 */
export async function reportServiceMemory(rpcUrl: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-service-'));
  const env = {
    PUBLIC_ORIGIN: `http://127.0.0.1:${PORT}`,
    DATA_DIR: directory,
    LOG_LEVEL: 'error',
    NETWORK: 'custom',
    NETWORK_NAME: 'Arc',
    CHAIN_ID: '5042',
    RPC_URLS: rpcUrl,
    PLAY_MONEY: 'on',
    USDC_ADDRESS: '0x3600000000000000000000000000000000000000',
    SELLER_ADDRESS: '0x00000000000000000000000000000000000000e1',
    RELAYER_PRIVATE_KEY: `0x${'11'.repeat(32)}`,
    COLLECTOR_REQUESTS_PER_SECOND: '9999',
    COLLECTOR_BACKFILL_HOURS: '48',
    COLLECTOR_RETENTION_DAYS: '7',
    RATE_LIMIT_FREE_PER_MINUTE: '0',
  };
  const service = await startService(PORT, '/livez', env);
  const atStart = partsOf(service.pid);
  let peak = atStart.total;
  for (;;) {
    await delay(500);
    peak = Math.max(peak, partsOf(service.pid).total);
    const health = (await (await fetch(`${service.origin}/v1/health`)).json()) as Health;
    if (health.readings?.windowCollectedShare === 1) break;
  }
  await delay(REST_MS);
  report('at its start', atStart);
  report(`${REST_MS / 1000} s after the collection`, partsOf(service.pid));
  console.log(`  its peak ${mb(peak)}; the goal is 200 MB after a day of blocks`);
  await service.stop();
  rmSync(directory, { recursive: true });
}

interface Health {
  readonly readings?: { readonly windowCollectedShare: number };
}

/** Resident bytes: all, those of Node's file, and those of malloc's main heap. The rest is V8's heap, the arenas of threads, and libraries. */
interface Parts {
  readonly total: number;
  readonly program: number;
  readonly malloc: number;
}

const mb = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

function report(when: string, { total, program, malloc }: Parts): void {
  console.log(
    `  ${`the service ${when}`.padEnd(46)}${mb(total)} resident: the program's file ${mb(program)}, malloc ${mb(malloc)}, V8 and the rest ${mb(total - program - malloc)}`,
  );
}

function partsOf(pid: number): Parts {
  const parts = { total: 0, program: 0, malloc: 0 };
  let name = '';
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'utf8').split('\n')) {
    const mapping = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)$/.exec(line);
    if (mapping) name = mapping[1] ?? '';
    if (!line.startsWith('Rss:')) continue;
    const bytes = Number(line.replace(/\D/g, '')) * 1024;
    parts.total += bytes;
    if (name.endsWith('/node')) parts.program += bytes;
    if (name === '[heap]') parts.malloc += bytes;
  }
  return parts;
}
