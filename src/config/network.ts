import { z } from 'zod';
import { address, httpUrl, list, whole } from './fields.ts';

interface Preset {
  readonly chainId: number;
  readonly rpcUrls: readonly string[];
  readonly usdc: `0x${string}`;
  readonly explorerUrl: string | null;
  /** Where a buyer reads how to get USDC on this chain; null: nowhere, as for play money. */
  readonly getUsdcUrl: string | null;
  /** The chain's name for people. */
  readonly name: string;
}

/** The chain that payments move on. */
export interface NetworkConfig extends Preset {
  /** Whether its coins are worth nothing, as on the embedded network. */
  readonly isPlayMoney: boolean;
  /** The chain's name in x402. */
  readonly caip2: `eip155:${number}`;
  /** The path segment under which the routes of the chain stand, beside `chain`. */
  readonly segment: string;
  /** JSON-RPC URLs that everybody may know: a page gives them to a wallet that lacks the chain. Never `rpcUrls`. */
  readonly walletRpcUrls: readonly string[];
}

/** Public addresses of Arc. The operator's RPC_URLS replace the public RPC endpoints. */
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

/** The USDC contract of an environment that was not checked yet, in lower case; null without one. */
export function usdcOf(given: Record<string, string | undefined>): string | null {
  return (given.USDC_ADDRESS ?? NETWORKS[given.NETWORK ?? '']?.usdc)?.toLowerCase() ?? null;
}

/** The environment's keys of the network. */
export const networkEnvironment = {
  NETWORK: z.enum(['arc', 'arc-testnet', 'custom'], 'one of arc, arc-testnet, custom'),
  CHAIN_ID: whole(0).optional(),
  RPC_URLS: list.pipe(z.array(httpUrl)).default([]),
  USDC_ADDRESS: address.optional(),
  EXPLORER_URL: httpUrl.optional(),
  GET_USDC_URL: httpUrl.optional(),
  WALLET_RPC_URLS: list.pipe(z.array(httpUrl)).default([]),
  // It stands in pages, documents and tool descriptions, so it has no markup and no line breaks.
  NETWORK_NAME: z
    .string()
    .regex(/^[\p{L}\p{N}][\p{L}\p{N} .()-]{0,39}$/u, 'up to 40 letters, digits, spaces, dots, dashes and parentheses')
    .optional(),
  PLAY_MONEY: z.enum(['on', 'off'], 'on or off').default('off'),
  CHAIN_SEGMENT: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,30}$/, 'lower-case letters, digits and dashes')
    .default('arc'),
};

type Environment = z.output<z.ZodObject<typeof networkEnvironment>>;

/** Missing settings of a network without a preset, one line each. */
export function networkProblems(given: Record<string, string | undefined>): string[] {
  if (given.NETWORK !== 'custom') return [];
  const missing = ['CHAIN_ID', 'RPC_URLS', 'USDC_ADDRESS'].filter((key) => given[key] === undefined);
  return missing.map((key) => `${key} is missing (NETWORK=custom needs it)`);
}

/** Builds the network's settings. `networkProblems` has found no problem before. */
export function assembleNetwork(env: Environment): NetworkConfig {
  const preset = NETWORKS[env.NETWORK];
  const chainId = env.CHAIN_ID || preset?.chainId || 0;
  const isPlayMoney = env.PLAY_MONEY === 'on';
  const publicRpcUrls = preset?.chainId === chainId ? preset.rpcUrls : [];
  return {
    name: env.NETWORK_NAME ?? preset?.name ?? `chain ${chainId}`,
    isPlayMoney,
    chainId,
    caip2: `eip155:${chainId}`,
    rpcUrls: env.RPC_URLS.length > 0 ? env.RPC_URLS : (preset?.rpcUrls ?? []),
    usdc: (env.USDC_ADDRESS ?? preset?.usdc ?? '').toLowerCase() as `0x${string}`,
    explorerUrl: env.EXPLORER_URL?.replace(/\/+$/, '') ?? preset?.explorerUrl ?? null,
    getUsdcUrl: isPlayMoney ? null : (env.GET_USDC_URL ?? preset?.getUsdcUrl ?? null),
    segment: env.CHAIN_SEGMENT,
    walletRpcUrls: env.WALLET_RPC_URLS.length > 0 ? env.WALLET_RPC_URLS : publicRpcUrls,
  };
}
