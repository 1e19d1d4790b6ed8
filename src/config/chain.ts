import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { type Given, key, needed, optional, type Rule, type Settings, table } from './table.ts';
import { address, blockHash, decimal, entries, httpUrl, listOf, lower, onOff, text, url, whole } from './values.ts';

// The chain that payments move on, what is looked for in its logs, how it is collected, and how that data is judged.

const rpcUrls = (net: string) =>
  ['rpc', 'rpc.blockdaemon', 'rpc.drpc', 'rpc.quicknode'].map((host) => `https://${host}.${net}.arc.io`);
/** Public addresses of Arc, of Circle and of the venues. Another network needs its own settings. */
const ARC = {
  name: 'Arc',
  chainId: 5042,
  rpcUrls: rpcUrls('mainnet'),
  usdc: '0x3600000000000000000000000000000000000000',
  explorerUrl: 'https://explorer.arc.io',
  getUsdcUrl: 'https://docs.arc.io/integrate/exchanges/cctp-bridging',
  getUsdcHow: "Move USDC from another chain with Circle's CCTP, which mints it at your address on Arc",
  tokens: [
    'EURC:0xbEf5f6d51CB62b58e6A8f77868681825C6fe21c1',
    'cirBTC:0x171A4217b86A807A64eB94757Db6849fb4bDbAA0',
    'WETH:0x128cC466B61f542da60c70e3aA11c10e19B84EDB',
  ],
  venues: [
    'v2:0x89e5DB8B5aA49aA85AC63f691524311AEB649eba:Uniswap v2',
    'v3:0xf0db7b58379503491d857dB50AC9ece64c653918:Uniswap v3',
    'v4:0x8366a39CC670B4001A1121B8F6A443A643e40951:Uniswap v4',
    'slipstream:0xb89Df768aF2CFE637ceB352c587Fe8edAf491d03:Aero',
  ],
};
const NETWORKS: Record<string, typeof ARC> = {
  arc: ARC,
  'arc-testnet': {
    name: 'Arc testnet',
    chainId: 5042002,
    rpcUrls: rpcUrls('testnet'),
    usdc: ARC.usdc,
    explorerUrl: 'https://explorer.testnet.arc.io',
    getUsdcUrl: 'https://faucet.circle.com',
    getUsdcHow: 'The faucet gives some away, and it is worth nothing',
    tokens: ['EURC:0x89B50855Aa3bE2F677cD6303Cec089B5F319D72a', 'cirBTC:0xf0C4a4CE82A5746AbAAd9425360Ab04fbBA432BF'],
    venues: [],
  },
};

/** The USDC contract of an unchecked environment, in lower case; null without one. */
export function usdcOf(given: Given): string | null {
  return (given.USDC_ADDRESS ?? NETWORKS[given.NETWORK ?? '']?.usdc)?.toLowerCase() ?? null;
}

const ofCustomNetwork = needed(
  ['CHAIN_ID', 'RPC_URLS', 'USDC_ADDRESS'],
  (given) => given.NETWORK === 'custom' && 'NETWORK=custom needs it',
);
/** Without markup and line breaks, because pages, documents and tool descriptions name it. */
const CHAIN_NAME = /^[\p{L}\p{N}][\p{L}\p{N} .()-]{0,39}$/u;
const chainName = text(CHAIN_NAME, 'up to 40 letters, digits, spaces, dots, dashes and parentheses');
const segment = text(/^[a-z][a-z0-9-]{0,30}$/, 'lower-case letters, digits and dashes');

export const CHAIN = table('The chain', ofCustomNetwork, {
  chainId: optional(
    'CHAIN_ID',
    whole(),
  )`Of a custom network; arc is 5042, arc-testnet 5042002. The nodes must have it.`,
  usdc: optional('USDC_ADDRESS', address)`The USDC contract (EIP-3009); known for arc and arc-testnet.`,
  explorerUrl: optional('EXPLORER_URL', httpUrl)`Block explorer that transactions link to; known for arc, arc-testnet.`,
  getUsdcUrl: optional('GET_USDC_URL', httpUrl)`Where buyers read how to get USDC on this chain: a link in /docs and
    /SKILL.md, not for play money. Known for arc and arc-testnet.`,
  walletRpcUrls: key('WALLET_RPC_URLS', listOf(httpUrl), '')`Comma-separated JSON-RPC URLs that everybody may know.
    /docs gives them to a wallet that lacks the chain. They are public: never one with an API key. Default: the
    network's public ones; none with NETWORK=custom, where a wallet is then told to add the chain by hand.`,
  name: optional('NETWORK_NAME', chainName)`The chain's name for people, in pages, documents and tool descriptions;
    known for arc and arc-testnet. Unset with NETWORK=custom: its id.`,
  isPlayMoney: key('PLAY_MONEY', onOff, 'off')`on: the chain's coins are worth nothing. Pages, documents and answers
    then say "demo, play money".`,
  segment: key('CHAIN_SEGMENT', segment, 'arc')`A second name of the segment \`chain\`, as in /v1/paid/arc/wallet.`,
});

/** The chain with what its network's preset knows of it. */
export function networkOf(network: string, rpcUrls: readonly string[], chain: Settings<typeof CHAIN>) {
  const preset = NETWORKS[network];
  const chainId = chain.chainId || preset?.chainId || 0;
  const { isPlayMoney, segment } = chain;
  const publicRpcUrls = preset?.chainId === chainId ? preset.rpcUrls : [];
  return {
    name: chain.name ?? preset?.name ?? `chain ${chainId}`,
    isPlayMoney,
    chainId,
    caip2: `eip155:${chainId}` as const,
    rpcUrls: rpcUrls.length > 0 ? rpcUrls : (preset?.rpcUrls ?? []),
    usdc: lower(chain.usdc ?? preset?.usdc ?? ''),
    explorerUrl: chain.explorerUrl?.replace(/\/+$/, '') ?? preset?.explorerUrl ?? null,
    getUsdcUrl: isPlayMoney ? null : (chain.getUsdcUrl ?? preset?.getUsdcUrl ?? null),
    /** In words, for the preset's own address alone. */
    getUsdcHow: chain.getUsdcUrl ? null : (preset?.getUsdcHow ?? null),
    segment,
    /** A page gives them to a wallet that lacks the chain. Never `rpcUrls`. */
    walletRpcUrls: chain.walletRpcUrls.length > 0 ? chain.walletRpcUrls : publicRpcUrls,
  };
}

const BURN_ADDRESSES = '0x0000000000000000000000000000000000000000,0x000000000000000000000000000000000000dEaD';

const tokenList = entries(
  /^([A-Za-z0-9.$_-]{1,16}):(0x[0-9a-fA-F]{40})$/,
  'SYMBOL:0xaddress',
  ([symbol = '', address = '']) => ({
    symbol,
    address: lower(address),
  }),
).refine(
  (tokens) => new Set(tokens.map(({ symbol }) => symbol.toLowerCase())).size === tokens.length,
  'a symbol for each token, none twice',
);
/** A place of trade: the contract that creates its pools; of v4 the pool manager, which also holds them. */
const venueList = entries(
  /^(v2|v3|v4|slipstream):(0x[0-9a-fA-F]{40}):([^:,]{1,40})$/,
  'KIND:0xaddress:Name, where KIND is v2, v3, v4 or slipstream',
  ([kind, address = '', name = '']) => ({
    kind: kind as 'v2' | 'v3' | 'v4' | 'slipstream',
    address: lower(address),
    name,
  }),
);
const addressList = entries(/^(0x[0-9a-fA-F]{40})$/, '0x addresses', ([address = '']) => lower(address));
const symbol = text(/^[A-Za-z0-9.$_-]{1,16}$/, 'at most 16 letters, digits or . $ _ -');

export const TOKENS = table('Tokens and their trades', [], {
  projectToken: optional('PROJECT_TOKEN_ADDRESS', address)`The project's own token: wallet answers show its balance.`,
  projectSymbol: key('PROJECT_TOKEN_SYMBOL', symbol, 'TOKEN')`Its symbol in requests, unless WATCH_TOKENS names it.`,
  distributor: optional('DISTRIBUTOR_ADDRESS', address.transform(lower))`The address whose USDC transfers are the
    project's payouts. Unset: none are collected.`,
  burnAddresses: key('BURN_ADDRESSES', addressList, BURN_ADDRESSES)`Comma-separated addresses; a transfer of the
    project token to one of them counts as a burn.`,
  tokens: optional('WATCH_TOKENS', tokenList)`Tokens whose trades against USDC are collected: comma-separated
    SYMBOL:0xaddress. Known for arc (EURC, cirBTC, WETH) and arc-testnet.`,
  venues: optional('DEX_VENUES', venueList)`The exchanges of these tokens: comma-separated KIND:0xaddress:Name. KIND is
    v2, v3 or slipstream (the factory's address) or v4 (the pool manager's). Known for arc.`,
  dustE9: key('TRADE_DUST_USDC', decimal('an amount of USDC', 9), '1')`A trade of less does not count towards prices.`,
  outlierPercent: key('TRADE_OUTLIER_PERCENT', whole(1, 999), '20')`A trade does not count towards prices either when
    it is further than this from the running median of the token's prices, in percent.`,
});

/** The environment's lists, else the network's preset; always with the project's token, if there is one. */
export function watchOf(network: string, settings: Settings<typeof TOKENS>) {
  const { tokens, venues, projectToken: own, projectSymbol: symbol, ...others } = settings;
  const preset = NETWORKS[network];
  const listed = tokens ?? tokenList.parse(String(preset?.tokens ?? ''));
  const projectToken = own && lower(own);
  const isAdded = projectToken !== null && !listed.some(({ address }) => address === projectToken);
  return {
    ...others,
    projectToken,
    tokens: isAdded ? [...listed, { symbol, address: projectToken }] : listed,
    venues: venues ?? venueList.parse(String(preset?.venues ?? '')),
  };
}

/** Arc's public endpoint takes about 2 a second, and the rest of the service reads too. */
const requestRate = text(/^\d{1,4}(\.\d{1,3})?$/, 'a number of requests a second, at least 0.1')
  .transform(Number)
  .refine((value) => value >= 0.1, 'at least 0.1');
const path = z.string().transform((text, context) => {
  try {
    if (!/^[a-z][a-z0-9+.-]*:/i.test(text)) return text;
    return fileURLToPath(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'a path, or a file:// URL of this machine' });
    return z.NEVER;
  }
});

const A_COPY = 'a copy is only read; collecting needs a database of its own';
const copyIsAlone: Rule = ({ CHAIN_DB_URL, COLLECTOR }) =>
  CHAIN_DB_URL !== undefined && COLLECTOR !== 'off' && `CHAIN_DB_URL is set without COLLECTOR=off (${A_COPY})`;

export const COLLECTOR = table('The collector: what it reads of the chain', [copyIsAlone], {
  enabled: key('COLLECTOR', onOff, 'on')`off: nothing is collected; answers have live data, and null elsewhere.`,
  requestsPerSecond: key('COLLECTOR_REQUESTS_PER_SECOND', requestRate, '1.5')`Mean HTTP requests per second, for the
    head and the background together. Arc's public endpoint accepts about 2 in total.`,
  pollIntervalMs: key('COLLECTOR_POLL_MS', whole(50, 60_000), '1000')`Time between two requests for the head.`,
  backfillHours: key('COLLECTOR_BACKFILL_HOURS', whole(1, 24 * 30), '24')`Past hours that are filled, newest first.`,
  retentionDays: key('COLLECTOR_RETENTION_DAYS', whole(2, 90), '3')`Days for which single blocks, deploys and trades
    are kept. Older ones become hourly figures. About 50 MB a day of Arc's traffic.`,
  wsUrls: key('WS_URLS', listOf(url(/^wss?$/, 'a ws or wss URL')), '')`Comma-separated ws:// or wss:// endpoints that
    announce new blocks at once. Empty: the head is polled, which is enough.`,
  genesisHash: optional('GENESIS_HASH', blockHash)`Hash of the chain's block 0. A provider with another one is never
    used. Unset: chain.db stores the first one that was seen.`,
  copyFile: optional('CHAIN_DB_URL', path)`With COLLECTOR=off: a copy of another instance's chain.db (a path, or
    file:///…) that is served instead of an own one. The service never writes to it, and opens the new copy when it is
    replaced. \`npm run backup -- --chain --to DIR --every 15\` beside the collecting instance makes it.`,
});

const upTo9Digits = (min: number) => whole(min, 999_999_999);
// Arc makes two blocks a second, so 30 s without a block are sixty missing blocks.
export const COLLECTED = table('How fresh collected data must be', [], {
  health: {
    stalledSeconds: key('HEALTH_STALLED_SECONDS', upTo9Digits(1), '30')`/v1/health answers 503 "stalled" when the head
      has not moved for longer than this.`,
    lagBlocks: key('HEALTH_LAG_BLOCKS', upTo9Digits(0), '60')`/v1/health answers 503 "lagging" when the collector is
      more blocks behind the head than this.`,
    lagSeconds: key('HEALTH_LAG_SECONDS', upTo9Digits(0), '30')`The same in seconds.`,
  },
  probeIntervalMs: key('PROBE_INTERVAL_MS', upTo9Digits(100), '5000')`Time between two probes of each RPC endpoint. A
    probe is one small request for the newest block.`,
  floorWei: optional('FEE_FLOOR_GWEI', decimal('an amount of gwei', 9))`The chain's lowest base fee in gwei. Unset: the
    lowest of the last day.`,
});
