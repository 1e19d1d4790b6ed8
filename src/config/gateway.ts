import { address, baseUrl, bearerToken, type Given, onOff, type Read, whole } from './table.ts';

// Circle's Gateway: payments from deposits, settled in batches.

/** Circle's own, by NETWORK. On another network the Gateway's URL and contract must be given. */
const CIRCLE: Record<string, { readonly url: string; readonly wallet: string }> = {
  arc: { url: 'https://gateway-api.circle.com', wallet: '0x77777777Dcc4d5A8B6E418Fd04D8997ef11000eE' },
  'arc-testnet': {
    url: 'https://gateway-api-testnet.circle.com',
    wallet: '0x0077777d7EBA4688BDeF3E311b846F25870A19B9',
  },
};

export const gatewayEnvironment = {
  GATEWAY: onOff('off'),
  GATEWAY_URL: baseUrl.optional(),
  GATEWAY_WALLET_ADDRESS: address.optional(),
  GATEWAY_TOKEN: bearerToken.optional(),
  GATEWAY_TIMEOUT_MS: whole(10_000, 1, 600_000),
};

export function gatewayProblems(given: Given): string[] {
  if (given.GATEWAY !== 'on' || CIRCLE[given.NETWORK ?? '']) return [];
  return ['GATEWAY_URL', 'GATEWAY_WALLET_ADDRESS']
    .filter((key) => given[key] === undefined)
    .map((key) => `${key} is missing (GATEWAY=on on this network needs it)`);
}

/** Null: off. `network` is the value of NETWORK. `gatewayProblems` has found no problem before. */
export function assembleGateway(env: Read<typeof gatewayEnvironment>, network: string) {
  if (env.GATEWAY !== 'on') return null;
  const own = CIRCLE[network];
  return {
    /** The base URL of `/v1/x402/…`. */
    url: env.GATEWAY_URL ?? own?.url ?? '',
    /** The contract that payers sign for, in lower case. */
    wallet: (env.GATEWAY_WALLET_ADDRESS ?? own?.wallet ?? '').toLowerCase() as `0x${string}`,
    token: env.GATEWAY_TOKEN ?? null,
    timeoutMs: env.GATEWAY_TIMEOUT_MS,
  };
}

export type GatewayConfig = Readonly<NonNullable<ReturnType<typeof assembleGateway>>>;
