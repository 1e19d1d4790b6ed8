import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { address, type Given, httpUrl, list, onOff, type Read, unitsOf, whole } from './table.ts';

// The chain that payments move on, what is looked for in its logs, how it is collected, and how that data is judged.

interface Preset {
  readonly chainId: number;
  readonly rpcUrls: readonly string[];
  readonly usdc: `0x${string}`;
  readonly explorerUrl: string | null;
  /** Where buyers read how to get USDC here; null: nowhere, as for play money. */
  readonly getUsdcUrl: string | null;
  readonly name: string;
}

/** Public addresses of Arc. The operator's RPC_URLS replace the RPC endpoints. */
const USDC_ON_ARC = '0x3600000000000000000000000000000000000000';
const NETWORKS: Record<string, Preset> = {
  arc: {
    chainId: 5042,
    rpcUrls: [
      'https://rpc.mainnet.arc.io',
      'https://rpc.blockdaemon.mainnet.arc.io',
      'https://rpc.drpc.mainnet.arc.io',
      'https://rpc.quicknode.mainnet.arc.io',
    ],
    usdc: USDC_ON_ARC,
    explorerUrl: 'https://explorer.arc.io',
    getUsdcUrl: 'https://docs.arc.io/integrate/exchanges/cctp-bridging',
    name: 'Arc',
  },
  'arc-testnet': {
    chainId: 5042002,
    rpcUrls: [
      'https://rpc.testnet.arc.io',
      'https://rpc.blockdaemon.testnet.arc.io',
      'https://rpc.drpc.testnet.arc.io',
      'https://rpc.quicknode.testnet.arc.io',
    ],
    usdc: USDC_ON_ARC,
    explorerUrl: 'https://explorer.testnet.arc.io',
    getUsdcUrl: 'https://faucet.circle.com',
    name: 'Arc testnet',
  },
};

/** The USDC contract of an unchecked environment, in lower case; null without one. */
export function usdcOf(given: Given): string | null {
  return (given.USDC_ADDRESS ?? NETWORKS[given.NETWORK ?? '']?.usdc)?.toLowerCase() ?? null;
}

export const networkEnvironment = {
  NETWORK: z.enum(['arc', 'arc-testnet', 'custom'], 'one of arc, arc-testnet, custom'),
  CHAIN_ID: whole(0).optional(),
  RPC_URLS: list.pipe(z.array(httpUrl)).default([]),
  USDC_ADDRESS: address.optional(),
  EXPLORER_URL: httpUrl.optional(),
  GET_USDC_URL: httpUrl.optional(),
  WALLET_RPC_URLS: list.pipe(z.array(httpUrl)).default([]),
  // Without markup and line breaks, because pages, documents and tool descriptions name it.
  NETWORK_NAME: z
    .string()
    .regex(/^[\p{L}\p{N}][\p{L}\p{N} .()-]{0,39}$/u, 'up to 40 letters, digits, spaces, dots, dashes and parentheses')
    .optional(),
  PLAY_MONEY: onOff('off'),
  CHAIN_SEGMENT: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,30}$/, 'lower-case letters, digits and dashes')
    .default('arc'),
};

/** What a network without a preset lacks, one line each. */
export function networkProblems(given: Given): string[] {
  if (given.NETWORK !== 'custom') return [];
  const missing = ['CHAIN_ID', 'RPC_URLS', 'USDC_ADDRESS'].filter((key) => given[key] === undefined);
  return missing.map((key) => `${key} is missing (NETWORK=custom needs it)`);
}

/** `networkProblems` has found no problem before. */
export function assembleNetwork(env: Read<typeof networkEnvironment>) {
  const preset = NETWORKS[env.NETWORK];
  const chainId = env.CHAIN_ID || preset?.chainId || 0;
  const isPlayMoney = env.PLAY_MONEY === 'on';
  const publicRpcUrls = preset?.chainId === chainId ? preset.rpcUrls : [];
  return {
    name: env.NETWORK_NAME ?? preset?.name ?? `chain ${chainId}`,
    /** Whether its coins are worth nothing, as on the embedded network. */
    isPlayMoney,
    chainId,
    caip2: `eip155:${chainId}` as const,
    rpcUrls: env.RPC_URLS.length > 0 ? env.RPC_URLS : (preset?.rpcUrls ?? []),
    usdc: (env.USDC_ADDRESS ?? preset?.usdc ?? '').toLowerCase() as `0x${string}`,
    explorerUrl: env.EXPLORER_URL?.replace(/\/+$/, '') ?? preset?.explorerUrl ?? null,
    getUsdcUrl: isPlayMoney ? null : (env.GET_USDC_URL ?? preset?.getUsdcUrl ?? null),
    /** Of the paths of the chain's routes, beside `chain`. */
    segment: env.CHAIN_SEGMENT,
    /** Public JSON-RPC URLs: a page gives them to a wallet that lacks the chain. Never `rpcUrls`. */
    walletRpcUrls: env.WALLET_RPC_URLS.length > 0 ? env.WALLET_RPC_URLS : publicRpcUrls,
  };
}

interface WatchedToken {
  readonly symbol: string;
  /** Lower case. */
  readonly address: `0x${string}`;
}

/** A place of trade: the contract that creates its pools; of v4 the pool manager, which also holds them. */
interface Venue {
  readonly kind: 'v2' | 'v3' | 'v4' | 'slipstream';
  readonly address: `0x${string}`;
  readonly name: string;
}

/** Public addresses of Circle and the venues. Another network needs its own settings. */
const PRESETS: Record<string, { readonly tokens: string; readonly venues: string }> = {
  arc: {
    tokens: [
      'EURC:0xbEf5f6d51CB62b58e6A8f77868681825C6fe21c1',
      'cirBTC:0x171A4217b86A807A64eB94757Db6849fb4bDbAA0',
      'WETH:0x128cC466B61f542da60c70e3aA11c10e19B84EDB',
    ].join(),
    venues: [
      'v2:0x89e5DB8B5aA49aA85AC63f691524311AEB649eba:Uniswap v2',
      'v3:0xf0db7b58379503491d857dB50AC9ece64c653918:Uniswap v3',
      'v4:0x8366a39CC670B4001A1121B8F6A443A643e40951:Uniswap v4',
      'slipstream:0xb89Df768aF2CFE637ceB352c587Fe8edAf491d03:Aero',
    ].join(),
  },
  'arc-testnet': {
    tokens: 'EURC:0x89B50855Aa3bE2F677cD6303Cec089B5F319D72a,cirBTC:0xf0C4a4CE82A5746AbAAd9425360Ab04fbBA432BF',
    venues: '',
  },
};

const BURN_ADDRESSES = '0x0000000000000000000000000000000000000000,0x000000000000000000000000000000000000dEaD';

const lowerAddress = (text: string) => text.toLowerCase() as `0x${string}`;
const listOf = <T>(pattern: RegExp, form: string, read: (groups: readonly string[]) => T) =>
  list.transform((entries, context): T[] =>
    entries.flatMap((entry) => {
      const [, ...groups] = pattern.exec(entry) ?? [];
      if (groups.length > 0) return [read(groups)];
      context.addIssue({ code: 'custom', message: `a comma-separated list of ${form}` });
      return [];
    }),
  );

const tokenList = listOf(
  /^([A-Za-z0-9.$_-]{1,16}):(0x[0-9a-fA-F]{40})$/,
  'SYMBOL:0xaddress',
  ([symbol = '', address = '']): WatchedToken => ({ symbol, address: lowerAddress(address) }),
).refine(
  (tokens) => new Set(tokens.map(({ symbol }) => symbol.toLowerCase())).size === tokens.length,
  'a symbol for each token, none twice',
);
const venueList = listOf(
  /^(v2|v3|v4|slipstream):(0x[0-9a-fA-F]{40}):([^:,]{1,40})$/,
  'KIND:0xaddress:Name, where KIND is v2, v3, v4 or slipstream',
  ([kind, address = '', name = '']): Venue => ({ kind: kind as Venue['kind'], address: lowerAddress(address), name }),
);
const addressList = listOf(/^(0x[0-9a-fA-F]{40})$/, '0x addresses', ([address = '']) => lowerAddress(address));

/** USDC in whole 10^-9. */
const e9 = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,9})?$/, 'an amount of USDC')
  .transform((text) => unitsOf(text, 9));

export const watchEnvironment = {
  WATCH_TOKENS: tokenList.optional(),
  DEX_VENUES: venueList.optional(),
  PROJECT_TOKEN_SYMBOL: z
    .string()
    .regex(/^[A-Za-z0-9.$_-]{1,16}$/, 'at most 16 letters, digits or . $ _ -')
    .default('TOKEN'),
  DISTRIBUTOR_ADDRESS: address.optional(),
  BURN_ADDRESSES: addressList.prefault(BURN_ADDRESSES),
  TRADE_DUST_USDC: e9.prefault('1'),
  TRADE_OUTLIER_PERCENT: z
    .string()
    .regex(/^\d{1,3}$/, 'a whole number from 1 to 999')
    .transform(Number)
    .refine((value) => value >= 1, 'a whole number from 1 to 999')
    .default(20),
};

/** The environment's list, else the network's preset; always with the project's token, if there is one. */
export function assembleWatch(env: Read<typeof watchEnvironment>, network: string, projectToken: string | undefined) {
  const preset = PRESETS[network];
  const tokens = env.WATCH_TOKENS ?? tokenList.parse(preset?.tokens ?? '');
  const project = projectToken === undefined ? null : lowerAddress(projectToken);
  const isListed = tokens.some(({ address }) => address === project);
  return {
    /** Tokens whose trades against USDC are collected. */
    tokens: project === null || isListed ? tokens : [...tokens, { symbol: env.PROJECT_TOKEN_SYMBOL, address: project }],
    venues: env.DEX_VENUES ?? venueList.parse(preset?.venues ?? ''),
    /** Null without one. It is among `tokens` too. */
    projectToken: project,
    /** The account whose USDC transfers are the project's payouts. */
    distributor: env.DISTRIBUTOR_ADDRESS ? lowerAddress(env.DISTRIBUTOR_ADDRESS) : null,
    /** Addresses that burn the project tokens sent to them. */
    burnAddresses: env.BURN_ADDRESSES,
    /** Smaller trades do not count towards prices; in 10^-9 USDC. */
    dustE9: env.TRADE_DUST_USDC,
    /** Trades further from the running median do not count towards prices. */
    outlierPercent: env.TRADE_OUTLIER_PERCENT,
  };
}

/** Addresses are in lower case. */
export type WatchConfig = Readonly<ReturnType<typeof assembleWatch>>;

export const collectorEnvironment = {
  COLLECTOR: onOff('on'),
  COLLECTOR_REQUESTS_PER_SECOND: z
    .string()
    .regex(/^\d{1,4}(\.\d{1,3})?$/, 'a number of requests a second')
    .transform(Number)
    .refine((value) => value >= 0.1, 'at least 0.1')
    // Arc's public endpoint takes about 2 a second, and the rest of the service reads too.
    .default(1.5),
  COLLECTOR_POLL_MS: whole(1000, 50, 60_000),
  COLLECTOR_BACKFILL_HOURS: whole(24, 1, 24 * 30),
  COLLECTOR_RETENTION_DAYS: whole(3, 2, 90),
  WS_URLS: list.pipe(z.array(z.url({ protocol: /^wss?$/, error: 'a ws or wss URL' }))).default([]),
  GENESIS_HASH: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, 'a block hash of 64 hex digits')
    .optional(),
  CHAIN_DB_URL: z
    .string()
    .transform((text, context) => {
      try {
        if (!/^[a-z][a-z0-9+.-]*:/i.test(text)) return text;
        return fileURLToPath(text);
      } catch {
        context.addIssue({ code: 'custom', message: 'a path, or a file:// URL of this machine' });
        return z.NEVER;
      }
    })
    .optional(),
};

export function collectorProblems(given: Given): string[] {
  return given.CHAIN_DB_URL !== undefined && given.COLLECTOR !== 'off'
    ? ['CHAIN_DB_URL is set without COLLECTOR=off (a copy is only read; collecting needs a database of its own)']
    : [];
}

export function assembleCollector(env: Read<typeof collectorEnvironment>) {
  return {
    /** False: routes read the chain live or return null. */
    enabled: env.COLLECTOR === 'on',
    requestsPerSecond: env.COLLECTOR_REQUESTS_PER_SECOND,
    pollIntervalMs: env.COLLECTOR_POLL_MS,
    backfillHours: env.COLLECTOR_BACKFILL_HOURS,
    retentionDays: env.COLLECTOR_RETENTION_DAYS,
    wsUrls: env.WS_URLS,
    /** The hash of block 0; a provider with another one is excluded from the first request on. Null: not checked. */
    genesisHash: (env.GENESIS_HASH?.toLowerCase() as `0x${string}` | undefined) ?? null,
    /** A copy of another service's database in place of our own. Newer copies may replace the file. */
    copyFile: env.CHAIN_DB_URL ?? null,
  };
}

const wholeOfNineDigits = (fallback: number, min: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'a whole number')
    .transform(Number)
    .refine((value) => value >= min, `a whole number from ${min}`)
    .default(fallback);

export const collectedEnvironment = {
  // Arc makes two blocks a second, so 30 s without a block are sixty missing blocks.
  HEALTH_STALLED_SECONDS: wholeOfNineDigits(30, 1),
  HEALTH_LAG_BLOCKS: wholeOfNineDigits(60, 0),
  HEALTH_LAG_SECONDS: wholeOfNineDigits(30, 0),
  PROBE_INTERVAL_MS: wholeOfNineDigits(5000, 100),
  FEE_FLOOR_GWEI: z
    .string()
    .regex(/^\d{1,9}(\.\d{1,9})?$/, 'an amount of gwei')
    .transform((text) => unitsOf(text, 9))
    .optional(),
};

export function assembleCollected(env: Read<typeof collectedEnvironment>) {
  return {
    health: {
      /** Longer without a new head is stalled. */
      stalledSeconds: env.HEALTH_STALLED_SECONDS,
      lagBlocks: env.HEALTH_LAG_BLOCKS,
      lagSeconds: env.HEALTH_LAG_SECONDS,
    },
    probeIntervalMs: env.PROBE_INTERVAL_MS,
    /** The chain's lowest base fee; null: measured over the last day. */
    floorWei: env.FEE_FLOOR_GWEI ?? null,
  };
}
