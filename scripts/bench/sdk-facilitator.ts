import { x402Facilitator } from '@x402/core/facilitator';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { createPublicClient, createWalletClient, defineChain, type Hex, http, nonceManager, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

interface SdkFacilitatorOptions {
  readonly chainId: number;
  readonly rpcUrl: string;
  readonly multicall3: Hex;
  /** The key of an account that holds gas. */
  readonly key: Hex;
  readonly pollMs: number;
}

/** What the SDK's facilitator signs, sends and reads with. viem's nonce manager keeps parallel settlements from colliding. */
export function createSdkSigner({ chainId, rpcUrl, multicall3, key, pollMs }: SdkFacilitatorOptions) {
  const chain = defineChain({
    id: chainId,
    name: 'embedded',
    nativeCurrency: { name: 'USDC', symbol: 'USDC', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
    contracts: { multicall3: { address: multicall3 } },
  });
  const account = privateKeyToAccount(key, { nonceManager });
  const transport = http(rpcUrl);
  const wallet = createWalletClient({ account, chain, transport, pollingInterval: pollMs }).extend(publicActions);
  const reader = createPublicClient({ chain, transport, pollingInterval: pollMs });
  return toFacilitatorEvmSigner({
    address: account.address,
    readContract: (args) => reader.readContract(args as never),
    verifyTypedData: (args) => reader.verifyTypedData(args as never),
    writeContract: (args) => wallet.writeContract(args as never),
    sendTransaction: (args) => wallet.sendTransaction(args as never),
    waitForTransactionReceipt: (args) => reader.waitForTransactionReceipt(args),
    getCode: (args) => reader.getCode(args),
  });
}

/** The SDK's own facilitator in this process, with one key. */
export function createSdkFacilitator(options: SdkFacilitatorOptions) {
  return new x402Facilitator().register(`eip155:${options.chainId}`, new ExactEvmScheme(createSdkSigner(options)));
}
