import { z } from 'zod';
import * as chain from './config/chain.ts';
import * as lightning from './config/lightning.ts';
import * as payment from './config/payment.ts';
import * as service from './config/service.ts';
import * as sources from './config/sources.ts';
import { address, httpUrl, list, privateKey, whole, wholeNumber } from './config/table.ts';
import { nearest } from './lib/edit-distance.ts';

// The environment becomes the configuration, subject by subject (`config/`). Every fault is collected, so that an
// operator can correct all at once; only an environment without a fault is assembled.

/** Carries every problem of the environment. */
export class ConfigError extends Error {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`the configuration has ${problems.length} problem(s):\n${problems.map((p) => `  - ${p}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

const environment = z.object({
  NODE_ENV: z.string().default('development'),
  ...chain.networkEnvironment,
  SELLER_ADDRESS: address,
  RELAYER_PRIVATE_KEY: privateKey.optional(),
  PROJECT_TOKEN_ADDRESS: address.optional(),
  ...chain.collectorEnvironment,
  ...chain.watchEnvironment,
  ...chain.collectedEnvironment,
  ...sources.packagesEnvironment,
  ...sources.namesEnvironment,
  ...lightning.lightningEnvironment,
  ...service.facilitatorEnvironment,
  ...sources.discoveryEnvironment,
  ...service.selfTestEnvironment,
  ...payment.relayerEnvironment,
  ...sources.marketsEnvironment,
  ...sources.marketEnvironment,
  ...payment.railsEnvironment,
  ...payment.offersEnvironment,
  ...payment.protocolsEnvironment,
  ...service.ledgerEnvironment,
  ...sources.webEnvironment,
  ...sources.siteEnvironment,
  ...payment.failuresEnvironment,
  HOST: z.string().default('127.0.0.1'),
  PORT: whole(4021, 0, 65535),
  PUBLIC_ORIGIN: httpUrl.optional(),
  DATA_DIR: z.string().min(1).default('data'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  TRUSTED_PROXIES: list.pipe(z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]))).default([]),
  CONNECTIONS_PER_CLIENT: whole(256),
  MAX_CONNECTIONS: wholeNumber().optional(),
  RATE_LIMIT_FREE_PER_MINUTE: whole(300),
  RATE_LIMIT_PRICED_PER_MINUTE: whole(600),
  PAYER_MAX_OPEN: whole(32),
  REPLY_STORE_MB: whole(256, 1),
  REDELIVERY_SECONDS: whole(900),
  REDELIVERY_MAX: whole(5),
  RPC_TIMEOUT_MS: whole(3000, 1),
  HANDLER_TIMEOUT_MS: whole(15_000, 1),
  SETTLE_WAIT_MS: whole(20_000, 1),
  RECEIPT_POLL_MS: whole(200, 1),
  RECONCILE_INTERVAL_MS: whole(5000, 1),
  METRICS_TOKEN: z.string().min(16, 'at least 16 characters').optional(),
});

/** The result is frozen. Throws ConfigError. An empty value counts as unset. */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = environment.safeParse(given);
  const problems = parsed.success ? [] : parsed.error.issues.map(describe(given));
  if (given.NODE_ENV === 'production' && given.PUBLIC_ORIGIN === undefined) {
    problems.push('PUBLIC_ORIGIN is missing (production needs the public address for its challenges)');
  }
  if (given.NODE_ENV === 'production' && given.ALLOW_TEST_HOSTS !== undefined) {
    problems.push('ALLOW_TEST_HOSTS is set (it leads around the address guard; production refuses to start with it)');
  }
  problems.push(
    ...chain.networkProblems(given),
    ...payment.sellerProblems(given),
    ...payment.originProblems(given),
    ...lightning.lightningProblems(given),
    ...service.selfTestProblems(given),
    ...payment.railsProblems(given),
    ...service.ledgerProblems(given),
    ...chain.collectorProblems(given),
    ...sources.siteProblems(given),
  );
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(assemble(parsed.data));
}

function describe(given: Record<string, string | undefined>) {
  return (issue: z.core.$ZodIssue): string => {
    const key = String(issue.path[0]);
    // The message leaves the value out, because it may be a private key.
    return given[key] === undefined ? `${key} is missing` : `${key}: ${issue.message}`;
  };
}

/** Each subject's function says what its members mean. A time has the unit of its name. */
function assemble(env: z.output<typeof environment>) {
  return {
    production: env.NODE_ENV === 'production',
    network: chain.assembleNetwork(env),
    seller: env.SELLER_ADDRESS as `0x${string}`,
    /** Null only where a remote facilitator settles. */
    relayerPrivateKey: (env.RELAYER_PRIVATE_KEY as `0x${string}` | undefined) ?? null,
    projectToken: (env.PROJECT_TOKEN_ADDRESS as `0x${string}` | undefined) ?? null,
    collector: chain.assembleCollector(env),
    watch: chain.assembleWatch(env, env.NETWORK, env.PROJECT_TOKEN_ADDRESS),
    collected: chain.assembleCollected(env),
    packages: sources.assemblePackages(env),
    names: sources.assembleNames(env),
    relayer: payment.assembleRelayer(env),
    lightning: lightning.assembleLightning(env),
    facilitator: service.assembleFacilitator(env),
    discovery: sources.assembleDiscovery(env, env.NETWORK),
    selfTest: service.assembleSelfTest(env),
    markets: sources.assembleMarkets(env, env.NETWORK),
    market: sources.assembleMarket(env),
    ledger: service.assembleLedger(env),
    rails: payment.assembleRails(env, env.NETWORK),
    offers: payment.assembleOffers(env),
    protocols: payment.assembleProtocols(env),
    web: sources.assembleWeb(env),
    site: sources.assembleSite(env),
    host: env.HOST,
    port: env.PORT,
    /** Scheme, host and port under which buyers reach us, without a trailing slash. */
    publicOrigin: env.PUBLIC_ORIGIN ? new URL(env.PUBLIC_ORIGIN).origin : `http://${env.HOST}:${env.PORT}`,
    dataDir: env.DATA_DIR,
    logLevel: env.LOG_LEVEL,
    trustedProxies: env.TRUSTED_PROXIES,
    /** Open connections; 0 is off. */
    connections: { perClient: env.CONNECTIONS_PER_CLIENT, most: env.MAX_CONNECTIONS ?? null },
    /** Requests a minute of one client; 0 is off. */
    rateLimits: { free: env.RATE_LIMIT_FREE_PER_MINUTE, priced: env.RATE_LIMIT_PRICED_PER_MINUTE },
    /** Open payments of one payer; 0 is off. */
    maxOpenPayments: env.PAYER_MAX_OPEN,
    failureLimits: payment.assembleFailures(env),
    unknownLimits: payment.assembleUnknown(env),
    replies: {
      storeBytes: env.REPLY_STORE_MB * 1024 * 1024,
      keepSeconds: env.REDELIVERY_SECONDS,
      maxDeliveries: env.REDELIVERY_MAX,
    },
    rpcTimeoutMs: env.RPC_TIMEOUT_MS,
    handlerTimeoutMs: env.HANDLER_TIMEOUT_MS,
    settleWaitMs: env.SETTLE_WAIT_MS,
    receiptPollMs: env.RECEIPT_POLL_MS,
    reconcileIntervalMs: env.RECONCILE_INTERVAL_MS,
    metricsToken: env.METRICS_TOKEN ?? null,
  };
}

export type Config = Readonly<ReturnType<typeof assemble>>;

/** Our keys' first words. HOST, LOG, NODE, PUBLIC, WEB and such are left out: ordinary environments have such keys. */
export const OWN_WORDS = [
  'RELAYER',
  'SETTLER',
  'SELLER',
  'CHANNELS',
  'GATEWAY',
  'FACILITATOR',
  'LIGHTNING',
  'LEDGER',
  'COLLECTOR',
  'SELFTEST',
  'PAYER',
  'REDELIVERY',
  'RPC',
  'USDC',
  'USYC',
  'MPP',
  'LND',
  'CLN',
  'NWC',
  'PHOENIXD',
  'UPSTREAM',
];

/** Keys that begin like ours and that our commands read: the buyer's (docs/paying.md). */
const READ_BY_COMMANDS = [
  'RPC_URL',
  'PAYER_URL',
  'NWC_PAYER',
  'LND_PAYER_URL',
  'LND_PAYER_TLS_CERT',
  'LND_PAYER_MACAROON',
];

/** What a cluster sets for a service that is named like one of our words: `LEDGER_PORT_5432_TCP`. */
const OF_A_CLUSTER = /_(SERVICE_(HOST|PORT)(_.*)?|PORT(_\d+_(TCP|UDP)(_\w+)?)?)$/;
/** Shorter words and keys are near to too many others. */
const LEAST_WORD = 6;
const LEAST_KEY = 8;
const LONG_WORDS = OWN_WORDS.filter((own) => own.length >= LEAST_WORD);
/** In so many letters a mistyped key may differ from a real one whose first word is none of ours. */
const MISTYPED = 2;

/**
 * The keys with a value that begin like ours, or are mistyped by up to two letters, and that nobody reads, each with
 * the nearest real one. A value may be a private key: none is shown.
 */
export function findUnreadKeys(
  env: Readonly<Record<string, string | undefined>>,
): readonly { key: string; nearest: string }[] {
  const known = Object.keys(environment.shape);
  const read = new Set([...known, ...READ_BY_COMMANDS]);
  return Object.entries(env).flatMap(([key, value]) => {
    if (!value || read.has(key) || !/^[A-Z][A-Z0-9_]*$/.test(key) || OF_A_CLUSTER.test(key)) return [];
    const real = nearest(key, known, MISTYPED);
    if (key.includes('_') && key.length >= LEAST_KEY && real) return [{ key, nearest: real.name }];
    const own = ownWordOf(key);
    const alike = known.filter((one) => firstWord(one) === own);
    return own === undefined ? [] : [{ key, nearest: nearest(key, alike, Number.POSITIVE_INFINITY)?.name ?? '' }];
  });
}

const firstWord = (key: string): string => key.split('_', 1)[0] ?? '';

/** Our word that a key begins with, also with one letter mistyped; undefined without one. */
function ownWordOf(key: string): string | undefined {
  const word = firstWord(key);
  if (OWN_WORDS.includes(word)) return word;
  return nearest(word, LONG_WORDS, 1)?.name;
}
