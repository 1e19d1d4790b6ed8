import { z } from 'zod';
import {
  assembleCollected,
  assembleCollector,
  assembleNetwork,
  assembleWatch,
  type CollectedConfig,
  type CollectorConfig,
  collectedEnvironment,
  collectorEnvironment,
  collectorProblems,
  type NetworkConfig,
  networkEnvironment,
  networkProblems,
  type WatchConfig,
  watchEnvironment,
} from './config/chain.ts';
import {
  assembleFacilitator,
  assembleLightning,
  assembleMarkets,
  assembleProtocols,
  type FacilitatorConfig,
  facilitatorEnvironment,
  type LightningConfig,
  lightningEnvironment,
  lightningProblems,
  type MarketsConfig,
  marketsEnvironment,
  type ProtocolsConfig,
  protocolsEnvironment,
} from './config/lightning.ts';
import {
  assembleFailures,
  assembleOffers,
  assembleRails,
  assembleRelayer,
  assembleUnknown,
  type FailureLimits,
  failuresEnvironment,
  type OffersConfig,
  offersEnvironment,
  originProblems,
  type RailsConfig,
  type RelayerConfig,
  railsEnvironment,
  railsProblems,
  relayerEnvironment,
  sellerProblems,
  type UnknownLimits,
} from './config/payment.ts';
import {
  assembleLedger,
  assembleSelfTest,
  type LedgerConfig,
  ledgerEnvironment,
  ledgerProblems,
  type SelfTestConfig,
  selfTestEnvironment,
  selfTestProblems,
} from './config/service.ts';
import {
  assembleDiscovery,
  assembleMarket,
  assembleNames,
  assemblePackages,
  assembleSite,
  assembleWeb,
  type DiscoveryConfig,
  discoveryEnvironment,
  type MarketConfig,
  marketEnvironment,
  type NamesConfig,
  namesEnvironment,
  type PackagesConfig,
  packagesEnvironment,
  type SiteConfig,
  siteEnvironment,
  siteProblems,
  type WebConfig,
  webEnvironment,
} from './config/sources.ts';
import { address, httpUrl, list, whole, wholeNumber } from './config/table.ts';
import { editDistance } from './lib/edit-distance.ts';

/** Carries every problem of the environment, so that an operator can correct all of them at once. */
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
  ...networkEnvironment,
  SELLER_ADDRESS: address,
  RELAYER_PRIVATE_KEY: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, 'a 0x private key of 64 hex digits')
    .optional(),
  PROJECT_TOKEN_ADDRESS: address.optional(),
  ...collectorEnvironment,
  ...watchEnvironment,
  ...collectedEnvironment,
  ...packagesEnvironment,
  ...namesEnvironment,
  ...lightningEnvironment,
  ...facilitatorEnvironment,
  ...discoveryEnvironment,
  ...selfTestEnvironment,
  ...relayerEnvironment,
  ...marketsEnvironment,
  ...marketEnvironment,
  ...railsEnvironment,
  ...offersEnvironment,
  ...protocolsEnvironment,
  ...ledgerEnvironment,
  ...webEnvironment,
  ...siteEnvironment,
  ...failuresEnvironment,
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

/** The service's whole configuration. `.env.example` explains every key. A time has the unit of its name. */
export interface Config {
  readonly production: boolean;
  readonly network: NetworkConfig;
  readonly seller: `0x${string}`;
  /** Null only where a remote facilitator settles. */
  readonly relayerPrivateKey: `0x${string}` | null;
  readonly projectToken: `0x${string}` | null;
  /** How the collector reads the chain. */
  readonly collector: CollectorConfig;
  /** What the collector looks for in the chain's logs. */
  readonly watch: WatchConfig;
  /** How answers describe the collected data, and how RPC endpoints are probed. */
  readonly collected: CollectedConfig;
  /** Where package data is read. */
  readonly packages: PackagesConfig;
  /** Where domains, currencies and encyclopedias are read. */
  readonly names: NamesConfig;
  /** How our own relayer settles. */
  readonly relayer: RelayerConfig;
  /** How the priced routes are sold over Lightning. */
  readonly lightning: LightningConfig;
  /** The facilitator's limits. */
  readonly facilitator: FacilitatorConfig;
  /** Where the search reads other sellers' entries. */
  readonly discovery: DiscoveryConfig;
  /** How the service buys its own endpoint. */
  readonly selfTest: SelfTestConfig;
  /** Which settlers settle USDC payments. */
  readonly rails: RailsConfig;
  /** What the operator changes in the catalogue's prices and routes. */
  readonly offers: OffersConfig;
  /** How payments are asked for and presented. */
  readonly protocols: ProtocolsConfig;
  /** Where the ledger is. */
  readonly ledger: LedgerConfig;
  /** Where the bitcoin price and USYC are read. */
  readonly markets: MarketsConfig;
  /** How the market of other sellers' routes is kept. */
  readonly market: MarketConfig;
  /** How third parties' web pages are fetched. */
  readonly web: WebConfig;
  /** What the pages for people link to. */
  readonly site: SiteConfig;
  readonly host: string;
  readonly port: number;
  /** Scheme, host and port under which buyers reach us, without a trailing slash. */
  readonly publicOrigin: string;
  readonly dataDir: string;
  readonly logLevel: string;
  readonly trustedProxies: readonly string[];
  /** Open connections; 0 is off. */
  readonly connections: { readonly perClient: number; readonly most: number | null };
  /** Requests per minute and client; 0 is off. */
  readonly rateLimits: { readonly free: number; readonly priced: number };
  /** Payments that one payer may have open at the same time; 0 is off. */
  readonly maxOpenPayments: number;
  /** Limits on uncharged failures; 0 is off. */
  readonly failureLimits: FailureLimits;
  /** Limits on payments with an unknown outcome; 0 is off. */
  readonly unknownLimits: UnknownLimits;
  readonly replies: { readonly storeBytes: number; readonly keepSeconds: number; readonly maxDeliveries: number };
  readonly rpcTimeoutMs: number;
  readonly handlerTimeoutMs: number;
  readonly settleWaitMs: number;
  readonly receiptPollMs: number;
  readonly reconcileIntervalMs: number;
  readonly metricsToken: string | null;
}

/** Reads the environment into a frozen Config, or throws ConfigError with every problem. An empty value counts as unset. */
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
    ...networkProblems(given),
    ...sellerProblems(given),
    ...originProblems(given),
    ...lightningProblems(given),
    ...selfTestProblems(given),
    ...railsProblems(given),
    ...ledgerProblems(given),
    ...collectorProblems(given),
    ...siteProblems(given),
  );
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(assemble(parsed.data));
}

/** The keys that look like ours and that nobody reads. Each is worth a warning: a mistyped setting has no effect. */
export function findUnreadKeys(env: Record<string, string | undefined>): readonly UnreadKey[] {
  return unreadKeys(env, Object.keys(environment.shape));
}

function describe(given: Record<string, string | undefined>) {
  return (issue: z.core.$ZodIssue): string => {
    const key = String(issue.path[0]);
    // The message leaves the value out, because it may be a private key.
    return given[key] === undefined ? `${key} is missing` : `${key}: ${issue.message}`;
  };
}

function assemble(env: z.output<typeof environment>): Config {
  return {
    production: env.NODE_ENV === 'production',
    network: assembleNetwork(env),
    seller: env.SELLER_ADDRESS as `0x${string}`,
    relayerPrivateKey: (env.RELAYER_PRIVATE_KEY as `0x${string}` | undefined) ?? null,
    projectToken: (env.PROJECT_TOKEN_ADDRESS as `0x${string}` | undefined) ?? null,
    collector: assembleCollector(env),
    watch: assembleWatch(env, env.NETWORK, env.PROJECT_TOKEN_ADDRESS),
    collected: assembleCollected(env),
    packages: assemblePackages(env),
    names: assembleNames(env),
    relayer: assembleRelayer(env),
    lightning: assembleLightning(env),
    facilitator: assembleFacilitator(env),
    discovery: assembleDiscovery(env, env.NETWORK),
    selfTest: assembleSelfTest(env),
    markets: assembleMarkets(env, env.NETWORK),
    market: assembleMarket(env),
    ledger: assembleLedger(env),
    rails: assembleRails(env, env.NETWORK),
    offers: assembleOffers(env),
    protocols: assembleProtocols(env),
    web: assembleWeb(env),
    site: assembleSite(env),
    host: env.HOST,
    port: env.PORT,
    publicOrigin: env.PUBLIC_ORIGIN ? new URL(env.PUBLIC_ORIGIN).origin : `http://${env.HOST}:${env.PORT}`,
    dataDir: env.DATA_DIR,
    logLevel: env.LOG_LEVEL,
    trustedProxies: env.TRUSTED_PROXIES,
    connections: { perClient: env.CONNECTIONS_PER_CLIENT, most: env.MAX_CONNECTIONS ?? null },
    rateLimits: { free: env.RATE_LIMIT_FREE_PER_MINUTE, priced: env.RATE_LIMIT_PRICED_PER_MINUTE },
    maxOpenPayments: env.PAYER_MAX_OPEN,
    failureLimits: assembleFailures(env),
    unknownLimits: assembleUnknown(env),
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

/** A key of the environment that looks like one of ours, and the real key that is nearest to it. Never its value. */
export interface UnreadKey {
  readonly key: string;
  readonly nearest: string;
}

/**
 * The first words of our keys that mean nothing to other programs. Words such as HOST, LOG, NODE, PUBLIC or WEB are
 * left out, because ordinary environments have keys that begin with them.
 */
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

/** Keys that begin like ours and are read by our commands: the buyer's (docs/paying.md). */
const READ_BY_COMMANDS = [
  'RPC_URL',
  'PAYER_URL',
  'NWC_PAYER',
  'LND_PAYER_URL',
  'LND_PAYER_TLS_CERT',
  'LND_PAYER_MACAROON',
];

/** What a cluster sets in each container for a service named like one of our words: `LEDGER_PORT_5432_TCP`. */
const OF_A_CLUSTER = /_(SERVICE_(HOST|PORT)(_.*)?|PORT(_\d+_(TCP|UDP)(_\w+)?)?)$/;
/** Shorter words and keys are near to too many others. */
const LEAST_WORD = 6;
const LEAST_KEY = 8;
/** Letters that a mistyped key may differ in from a real one whose first word is no word of ours. */
const MISTYPED = 2;

/**
 * Returns the keys with a value that begin like ours, or are mistyped by up to two letters, and that are no key of
 * `known`. A setting that nobody reads would go unnoticed: the service runs on without it. No value is shown,
 * because it may be a private key.
 */
export function unreadKeys(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): readonly UnreadKey[] {
  const read = new Set([...known, ...READ_BY_COMMANDS]);
  return Object.entries(env).flatMap(([key, value]) => {
    if (!value || read.has(key) || !/^[A-Z][A-Z0-9_]*$/.test(key) || OF_A_CLUSTER.test(key)) return [];
    const { name, distance } = nearestOf(key, known);
    if (key.includes('_') && key.length >= LEAST_KEY && distance <= MISTYPED) return [{ key, nearest: name }];
    const own = ownWordOf(key);
    const alike = known.filter((one) => firstWord(one) === own);
    return own === undefined ? [] : [{ key, nearest: nearestOf(key, alike).name }];
  });
}

const firstWord = (key: string): string => key.split('_', 1)[0] ?? '';

/** Our word that a key begins with, also with one letter mistyped; undefined without one. */
function ownWordOf(key: string): string | undefined {
  const word = firstWord(key);
  return (
    OWN_WORDS.find((own) => own === word) ??
    OWN_WORDS.find((own) => own.length >= LEAST_WORD && editDistance(word, own, 1) <= 1)
  );
}

function nearestOf(key: string, known: readonly string[]): { name: string; distance: number } {
  let nearest = { name: '', distance: Number.POSITIVE_INFINITY };
  for (const name of known) {
    const most = Math.min(nearest.distance - 1, key.length + name.length);
    const distance = editDistance(key, name, most);
    if (distance <= most) nearest = { name, distance };
  }
  return nearest;
}
