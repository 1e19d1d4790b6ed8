import { z } from 'zod';

/** A token whose trades against USDC are collected, with the symbol that requests use. */
export interface WatchedToken {
  readonly symbol: string;
  /** Lower case. */
  readonly address: `0x${string}`;
}

/** A place of trade: the contract that creates its pools (v4: the pool manager, which also holds them). */
export interface Venue {
  readonly kind: 'v2' | 'v3' | 'v4' | 'slipstream';
  readonly address: `0x${string}`;
  readonly name: string;
}

/** What the collector looks for in the chain's logs. Addresses are in lower case. */
export interface WatchConfig {
  readonly tokens: readonly WatchedToken[];
  readonly venues: readonly Venue[];
  /** The project's own token, when one is configured; it is among `tokens` too. */
  readonly projectToken: `0x${string}` | null;
  /** The account whose USDC transfers are the project's payouts. */
  readonly distributor: `0x${string}` | null;
  /** Addresses that burn the project tokens sent to them. */
  readonly burnAddresses: readonly `0x${string}`[];
  /** Trades of less than this do not count towards prices; in 10^-9 USDC. */
  readonly dustE9: bigint;
  /** Trades further than this from the running median do not count towards prices; in percent. */
  readonly outlierPercent: number;
}

/** Circle's and the venues' public addresses. A network without a preset needs its own settings. */
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

/** The zero address, and the address that is commonly used for burning. */
const BURN_ADDRESSES = '0x0000000000000000000000000000000000000000,0x000000000000000000000000000000000000dEaD';

const lowerAddress = (text: string) => text.toLowerCase() as `0x${string}`;
const entries = (text: string): string[] => text.split(',').flatMap((part) => part.trim() || []);
/** Parses every entry by `pattern`, or reports a problem that names the form. */
const listOf = <T>(pattern: RegExp, form: string, read: (groups: readonly string[]) => T) =>
  z.string().transform((text, context): T[] =>
    entries(text).flatMap((entry) => {
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

/** USDC with up to nine decimals, as whole 10^-9. */
const e9 = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,9})?$/, 'an amount of USDC')
  .transform((text) => {
    const [whole = '0', fraction = ''] = text.split('.');
    return BigInt(whole + fraction.padEnd(9, '0'));
  });

/** The environment's keys of the watch list. */
export const watchEnvironment = {
  WATCH_TOKENS: tokenList.optional(),
  DEX_VENUES: venueList.optional(),
  PROJECT_TOKEN_SYMBOL: z
    .string()
    .regex(/^[A-Za-z0-9.$_-]{1,16}$/, 'at most 16 letters, digits or . $ _ -')
    .default('TOKEN'),
  DISTRIBUTOR_ADDRESS: z
    .string()
    .regex(/^0x[0-9a-fA-F]{40}$/, 'a 0x address of 40 hex digits')
    .optional(),
  BURN_ADDRESSES: addressList.prefault(BURN_ADDRESSES),
  TRADE_DUST_USDC: e9.prefault('1'),
  TRADE_OUTLIER_PERCENT: z
    .string()
    .regex(/^\d{1,3}$/, 'a whole number from 1 to 999')
    .transform(Number)
    .refine((value) => value >= 1, 'a whole number from 1 to 999')
    .default(20),
};

type WatchEnvironment = z.output<z.ZodObject<typeof watchEnvironment>>;

/** Builds the watch list of a network: the environment's, else the preset's. It always contains the project's token, if there is one. */
export function assembleWatch(env: WatchEnvironment, network: string, projectToken: string | undefined): WatchConfig {
  const preset = PRESETS[network];
  const tokens = env.WATCH_TOKENS ?? tokenList.parse(preset?.tokens ?? '');
  const project = projectToken === undefined ? null : lowerAddress(projectToken);
  const isListed = tokens.some(({ address }) => address === project);
  return {
    tokens: project === null || isListed ? tokens : [...tokens, { symbol: env.PROJECT_TOKEN_SYMBOL, address: project }],
    venues: env.DEX_VENUES ?? venueList.parse(preset?.venues ?? ''),
    projectToken: project,
    distributor: env.DISTRIBUTOR_ADDRESS ? lowerAddress(env.DISTRIBUTOR_ADDRESS) : null,
    burnAddresses: env.BURN_ADDRESSES,
    dustE9: env.TRADE_DUST_USDC,
    outlierPercent: env.TRADE_OUTLIER_PERCENT,
  };
}
