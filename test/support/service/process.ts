import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { writeFreshLedger } from '../ledger/fresh-ledger.ts';
import { CHILD_ENV, CHILD_OPTIONS } from './child-env.ts';
import { ownPort } from './own-port.ts';
import { call, NODE_ANSWERS } from './service.ts';

/** A start takes some seconds on an idle machine. Twenty busy programs on two cores have made it last longer than 30 s. */
const READY_MS = 120_000;
/** Built from the sources before the tests. */
const SERVER = join(import.meta.dirname, '../../../dist/server.js');

/** The real service, or another program, as its own process, which can be killed and started again over the same files. */
export async function createProcess(
  network: EmbeddedNetwork,
  dataDir: string,
  env: Record<string, string> = {},
  { program = SERVER }: { program?: string } = {},
) {
  const port = env.PORT ?? (await ownPort());
  const origin = `http://127.0.0.1:${port}`;
  const given: Record<string, string> = {
    ...embeddedEnvironment(network),
    ...NODE_ANSWERS,
    PORT: String(port),
    PUBLIC_ORIGIN: origin,
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
    RATE_LIMIT_PRICED_PER_MINUTE: '0',
    RATE_LIMIT_FREE_PER_MINUTE: '0',
    PAYER_FAILURES_PER_MINUTE: '0',
    CLIENT_FAILURES_PER_MINUTE: '0',
    CLIENT_FAILED_SETTLEMENTS_PER_DAY: '0',
    PAYER_MAX_UNKNOWN: '0',
    CLIENT_MAX_UNKNOWN: '0',
    RELAYER_DAILY_GAS_USDC: 'off',
    RECONCILE_INTERVAL_MS: '500',
    ...env,
  };
  if (!given.LEDGER_URL) layFreshLedger(given.DATA_DIR ?? dataDir);
  let child: ChildProcess | null = null;
  let log = '';
  const keep = (chunk: Buffer): void => {
    log = (log + chunk.toString('utf8')).slice(-2_000_000);
  };

  function launch(): ChildProcess {
    const env = { ...CHILD_ENV, ...given };
    const launched = spawn(process.execPath, [...CHILD_OPTIONS, program], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    launched.stdout.on('data', keep);
    launched.stderr.on('data', keep);
    return launched;
  }

  return {
    origin,
    /** The log of all its runs. */
    log: () => log,
    /** Its process id. With several processes, the primary's. */
    pid: (): number => child?.pid ?? 0,
    /** Starts it and returns when it is ready for paid calls. */
    start: async (): Promise<void> => {
      const started = launch();
      child = started;
      let last = 'no answer';
      for (const until = Date.now() + READY_MS; Date.now() < until; ) {
        if (started.exitCode !== null) throw new Error(`the service ended with ${started.exitCode}:\n${log}`);
        const ready = await call(origin, '/readyz').catch(() => null);
        if (ready?.status === 200) return;
        if (ready) last = `${ready.status} ${ready.body}`;
        await new Promise((next) => setTimeout(next, 50));
      }
      throw new Error(`the service was not ready in ${READY_MS / 1000} s (${last}):\n${log}`);
    },
    /** kill -9: no handler runs, no file is closed. */
    kill: async (): Promise<void> => {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
    /** Resolves with the exit code once it has ended by itself. */
    ended: async (): Promise<number | null> => {
      if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      return child?.exitCode ?? null;
    },
    /** Stops it and returns its exit code. */
    stop: async (): Promise<number | null> => {
      if (!child || child.exitCode !== null || child.signalCode !== null) return null;
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      const [code] = await gone;
      return code as number | null;
    },
  };
}

/** A new ledger's migrations are a thirtieth of a start's work, so a first start finds them made. */
function layFreshLedger(dataDir: string): void {
  mkdirSync(dataDir, { recursive: true });
  const file = join(dataDir, 'ledger.db');
  if (!existsSync(file)) writeFreshLedger(file);
}
