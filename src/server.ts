import { existsSync, statSync } from 'node:fs';
import { buildApp } from './app.ts';
import { type Config, ConfigError, findUnreadKeys, loadConfig } from './config.ts';
import { StartRefused } from './errors.ts';
import { createStop, dieOnUnhandled, stopWhenSyncFails } from './http/lifecycle.ts';
import { createLogger } from './lib/common.ts';
import { chainTitle } from './lib/service.ts';
import { openCatalogue } from './wiring/catalogue.ts';
import { createDeps } from './wiring/service.ts';

// The process: environment, signals, exit codes. Who is paid on which chain is logged before anything is opened. A
// signal, or a sync of the ledger that fails, stops the service. A refused start says why, and exits with 1.

/** Why a server cannot listen, by the system's code. */
const LISTENING: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there: stop it, or set another PORT',
  EACCES: 'this user may not listen there: set a PORT of 1024 or above',
  EADDRNOTAVAIL: 'this machine has no such address: set another HOST',
  ENOTFOUND: 'this machine has no such address: set another HOST',
};

const exit = (code: number) => process.exit(code);

// The ledger holds what no other user of the machine may read.
process.umask(0o077);
if (existsSync('.env')) process.loadEnvFile('.env');
const bootLog = createLogger(process.env.LOG_LEVEL || 'info');
dieOnUnhandled(bootLog, exit);
if (existsSync('.env') && (statSync('.env').mode & 0o077) !== 0)
  bootLog.warn('other users of this machine may read .env, which holds keys: chmod 600 .env');
const embedded = await startEmbedded();
try {
  await run(loadConfig({ ...process.env, ...embedded?.environment }));
} catch (error) {
  process.stderr.write(refusalOf(error));
  exit(1);
}

/** It lets a newcomer's first command work. Null where NETWORK is set, and in production. */
async function startEmbedded() {
  if (process.env.NETWORK || process.env.NODE_ENV === 'production') return null;
  const { startEmbeddedNetwork } = await import('../dev/network.ts');
  const { besideOperators, embeddedEnvironment } = await import('../dev/serve.ts');
  const network = await startEmbeddedNetwork({ traffic: true, lightning: true });
  bootLog.warn(
    { rpcUrl: network.rpcUrl, dataDir: network.dataDir, payInvoicesAt: network.lightning?.payUrl },
    'EMBEDDED NETWORK WITH PLAY MONEY: NETWORK is not set; nothing here is worth anything, ' +
      'and all of it is gone when this process stops',
  );
  const wanted = embeddedEnvironment(network, { selfTest: true, channels: true, demoBuyer: true });
  const { environment, ignored } = besideOperators(process.env, wanted);
  if (ignored.length > 0) bootLog.warn({ ignored }, 'the embedded network sets these keys itself');
  return { environment, stop: network.stop };
}

async function run(config: Config): Promise<void> {
  // What only the catalogue can judge is refused before anything is opened.
  openCatalogue(config);
  announce(config);
  return serve(config);
}

/** An operator shall see a wrong recipient or chain before the first sale. */
function announce({ seller, network, logLevel }: Config): void {
  const log = createLogger(logLevel);
  log.info({ seller, network: network.caip2, chain: chainTitle(network) }, 'percall starts');
  // Without the value, which may be a private key.
  for (const { key, nearest } of findUnreadKeys(process.env))
    log.warn({ key, nearest }, 'nobody reads this key of the environment; .env.example has the real ones');
}

async function serve(config: Config): Promise<void> {
  const log = createLogger(config.logLevel);
  const deps = await createDeps(config, log);
  const app = await buildApp(deps);
  const closeDeps = async () => {
    await deps.close();
    await embedded?.stop();
  };
  const stop = createStop(log, app, closeDeps, exit);
  void stopWhenSyncFails(deps.ledgerSyncFailed, stop, log);
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      // First, because a run of the self-test would report the shutdown as a fault.
      void deps.selfTest?.stop();
      void stop(signal);
    });
  const { host, port } = config;
  const url = await app.listen({ host, port }).catch((error: unknown) => {
    throw listeningRefused(error, { host, port });
  });
  deps.selfTest?.start();
  log.info(
    { url, network: config.network.caip2, chain: chainTitle(config.network), publicOrigin: config.publicOrigin },
    'listening',
  );
}

/** Any other error stays as it is. */
function listeningRefused(error: unknown, { host, port }: { host: string; port: number }): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const why = LISTENING[code];
  return why === undefined ? error : new StartRefused(`${host}:${port} (${code}): ${why}`, { cause: error });
}

/** Rethrows anything that is no refused start: that is a bug. */
function refusalOf(error: unknown): string {
  if (error instanceof ConfigError) return `${error.message}\n.env.example explains every key.\n`;
  if (error instanceof StartRefused) return `percall does not start: ${error.message}\n`;
  throw error;
}
