import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { buildApp } from '../../../src/app.ts';
import type { Endpoint } from '../../../src/catalogue/endpoint.ts';
import { loadConfig } from '../../../src/config.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import { createDeps } from '../../../src/wiring/service.ts';
import { writeFreshLedger } from '../ledger/fresh-ledger.ts';
import { ownPort } from './own-port.ts';

/** An answer as received. */
export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

interface CallOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** The loopback address to call from; another address is another client. */
  from?: string;
}

/**
 * Why an answer breaks a rule that every answer keeps; null without a reason. Some wallets pay whatever asks them to, whatever the status. So only a
 * 402 may ask for a payment, and only a sold answer has a receipt.
 */
export function faultOf({ status, headers }: Pick<Answer, 'status' | 'headers'>): string | null {
  if (headers['www-authenticate'] !== undefined && status !== 402) return `${status} with WWW-Authenticate`;
  if (headers['payment-required'] !== undefined && status !== 402) return `${status} with PAYMENT-REQUIRED`;
  return headers['payment-receipt'] !== undefined && status !== 200 ? `${status} with Payment-Receipt` : null;
}

/** One HTTP request over its own connection. Rejects for an answer with a fault. */
export function call(
  origin: string,
  path: string,
  { method = 'GET', headers = {}, body, from }: CallOptions = {},
): Promise<Answer> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const options = {
      hostname,
      port,
      path,
      method,
      headers,
      agent: false as const,
      ...(from && { localAddress: from }),
    };
    const sent = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode = 0, headers: got } = response;
        const answer = { status: statusCode, headers: got, body: Buffer.concat(chunks).toString('utf8') };
        const fault = faultOf(answer);
        return fault ? reject(new Error(`${method} ${path}: ${fault}`)) : resolve(answer);
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Turns off every limit on clients, because suites call from one address, and the gas budget, because they settle many payments. */
const UNLIMITED = {
  RELAYER_DAILY_GAS_USDC: 'off',
  RATE_LIMIT_FREE_PER_MINUTE: '0',
  RATE_LIMIT_PRICED_PER_MINUTE: '0',
  PAYER_FAILURES_PER_MINUTE: '0',
  CLIENT_FAILURES_PER_MINUTE: '0',
  CLIENT_FAILED_SETTLEMENTS_PER_DAY: '0',
  PAYER_MAX_UNKNOWN: '0',
  CLIENT_MAX_UNKNOWN: '0',
};

export interface ServiceOptions {
  env?: Record<string, string>;
  catalogue?: readonly Endpoint<Sources>[];
  dataDir?: string;
  clock?: Clock;
}

/** A node of the tests answers, however late: tests of one that does not have their own time. The default of 3 s would end a sale at a pause. */
export const NODE_ANSWERS = { RPC_TIMEOUT_MS: '60000' };

/** A database of the tests answers too. By default a pause of 3 s ends a connection to it. */
const LEDGER_ANSWERS = { LEDGER_CONNECT_TIMEOUT_MS: '20000', LEDGER_STATEMENT_TIMEOUT_MS: '20000' };

/** The real service in this process, on the embedded network. */
export function startService(network: EmbeddedNetwork, { env = {}, ...options }: ServiceOptions = {}) {
  return serviceWith({ ...embeddedEnvironment(network), ...env }, options);
}

/** The same with any configuration. Chooses port, origin and data directory unless `env` sets them. */
export async function serviceWith(
  env: Record<string, string>,
  { catalogue, dataDir, clock }: Omit<ServiceOptions, 'env'>,
) {
  const folder = dataDir ?? mkdtempSync(join(tmpdir(), 'percall-'));
  if (!dataDir && !env.LEDGER_URL) writeFreshLedger(join(folder, 'ledger.db'));
  const port = await ownPort();
  const origin = `http://127.0.0.1:${port}`;
  const { DATA_DIR: _elsewhere, ...asked } = env;
  const answering = { ...NODE_ANSWERS, ...(env.LEDGER_URL && LEDGER_ANSWERS) };
  const given = { ...UNLIMITED, ...answering, PORT: String(port), PUBLIC_ORIGIN: origin, DATA_DIR: folder };
  const config = loadConfig({ ...given, ...asked });
  const deps = await createDeps(config, pino({ level: process.env.TEST_LOG ?? 'silent' }), catalogue, clock);
  const app = await buildApp(deps);
  await app.listen({ host: '127.0.0.1', port });
  return {
    origin,
    dataDir: folder,
    config,
    deps,
    get: (path: string, options?: CallOptions) => call(origin, path, options),
    stop: async () => {
      await app.close();
      await deps.close();
      if (!dataDir) rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type Service = Awaited<ReturnType<typeof startService>>;
