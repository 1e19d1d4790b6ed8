import { createRequire } from 'node:module';

/** A USDC contract's EIP-712 domain, without its chain and its address. */
interface UsdcToken {
  readonly name: string;
  readonly version: string;
}

/** Loads the stock client's table of tokens. It brings 500 modules, which a purchase on Arc or over Lightning does not need. */
const loadTokens = () => createRequire(import.meta.url)('@x402/evm') as typeof import('@x402/evm');

/** Networks whose USDC the stock client does not know yet. */
const ARC_NETWORKS = ['eip155:5042', 'eip155:5042002'];
const ARC_USDC = '0x3600000000000000000000000000000000000000';

/** The USDC contract at this address of this network (CAIP-2). Null for anything else, because another asset's amount has another unit. */
export function usdcToken(network: string, asset: string): UsdcToken | null {
  if (ARC_NETWORKS.includes(network)) return asset.toLowerCase() === ARC_USDC ? { name: 'USDC', version: '2' } : null;
  const known = loadTokens().findDefaultAsset(asset, network as `${string}:${string}`);
  return known?.symbol === 'USDC' && known.decimals === 6 ? { name: known.name, version: known.version } : null;
}
