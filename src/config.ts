import * as chains from './config/chain.ts';
import { LIGHTNING, lightningOf } from './config/lightning.ts';
import * as payment from './config/payment.ts';
import { SELLER } from './config/seller.ts';
import * as service from './config/service.ts';
import * as sources from './config/sources.ts';
import { type Given, keysOf, readMembers, type Settings } from './config/table.ts';
import { nearest } from './lib/edit-distance.ts';

// The environment becomes the configuration, table by table (`config/`). Every fault is collected, so that an operator
// can correct all at once; only an environment without a fault is assembled.

/** Carries every problem of the environment. */
export class ConfigError extends Error {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`the configuration has ${problems.length} problem(s):\n${problems.map((p) => `  - ${p}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Every table, in the order in which documents have them. */
export const TABLES = {
  seller: SELLER,
  chain: chains.CHAIN,
  tokens: chains.TOKENS,
  collector: chains.COLLECTOR,
  collected: chains.COLLECTED,
  settling: payment.SETTLING,
  relayer: payment.RELAYER,
  gateway: payment.GATEWAY,
  channels: payment.CHANNELS,
  lightning: LIGHTNING,
  protocols: payment.PROTOCOLS,
  markets: sources.MARKETS,
  server: service.SERVER,
  ledger: service.LEDGER,
  limits: payment.LIMITS,
  replies: payment.REPLIES,
  times: service.TIMES,
  selfTest: service.SELFTEST,
  site: sources.SITE,
  agents: sources.AGENTS,
  web: sources.WEB,
  packages: sources.PACKAGES,
  names: sources.NAMES,
  market: sources.MARKET,
  discovery: sources.DISCOVERY,
  facilitator: service.FACILITATOR,
};
type Tables = Settings<typeof TABLES>;

/** The result is frozen. Throws ConfigError. An empty value counts as unset. */
export function loadConfig(env: Given): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const problems: string[] = [];
  const tables = Object.entries(TABLES).map(([name, { members }]) => [name, readMembers(members, given, problems)]);
  const broken = Object.values(TABLES).flatMap(({ rules }) => rules.map((rule) => rule(given)));
  problems.push(...broken.filter((problem) => problem !== false));
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(assemble(Object.fromEntries(tables) as Tables));
}

/** A table is a member of the configuration, except for those whose values go together with other tables'. */
function assemble(tables: Tables) {
  const { seller, chain, tokens, settling, gateway, channels, server, limits, times, ...others } = tables;
  const { network } = seller;
  return {
    ...others,
    ...server,
    ...limits,
    ...times,
    production: seller.mode === 'production',
    network: chains.networkOf(network, seller.rpcUrls, chain),
    seller: seller.address,
    /** Null only where a remote facilitator settles. */
    relayerPrivateKey: seller.relayerPrivateKey,
    /** Scheme, host and port under which buyers reach us, without a trailing slash. */
    publicOrigin: seller.publicOrigin ? new URL(seller.publicOrigin).origin : `http://${server.host}:${server.port}`,
    offers: seller.offers,
    projectToken: tokens.projectToken,
    watch: chains.watchOf(network, tokens),
    rails: {
      remote: payment.remoteOf(network, settling),
      gateway: payment.gatewayOf(network, gateway),
      channels: seller.channels ? { ...channels, authorizerKey: seller.authorizerKey ?? '0x' } : null,
      /** The least price at which the plain rail is offered, in USDC base units. Null: it is offered nowhere. */
      exactFrom: settling.exact ? settling.exactFrom : null,
    },
    lightning: lightningOf(seller.receiver, tables.lightning),
    markets: sources.marketsOf(network, tables.markets),
    discovery: sources.discoveryOf(network, tables.discovery),
  };
}

export type Config = Readonly<ReturnType<typeof assemble>>;

/** Our keys' first words. HOST, LOG, NODE, PUBLIC, WEB and such are left out: ordinary environments have such keys. */
export const OWN_WORDS = (
  'RELAYER SETTLER SELLER CHANNELS GATEWAY FACILITATOR LIGHTNING LEDGER COLLECTOR SELFTEST PAYER REDELIVERY ' +
  'RPC USDC USYC MPP LND CLN NWC PHOENIXD UPSTREAM'
).split(' ');

/** Keys that begin like ours and that our commands read: the buyer's (docs/paying.md). */
const READ_BY_COMMANDS = 'RPC_URL PAYER_URL NWC_PAYER LND_PAYER_URL LND_PAYER_TLS_CERT LND_PAYER_MACAROON'.split(' ');

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
  const known = Object.values(TABLES).flatMap((one) => keysOf(one).map(({ name }) => name));
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
