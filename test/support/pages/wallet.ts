import type { Page } from 'playwright-core';
import { privateKeyToAccount } from 'viem/accounts';

interface WalletOptions {
  readonly privateKey: `0x${string}`;
  /** The chain that the wallet is on at first. */
  readonly chainId: number;
  /** Methods that the wallet's user declines. */
  readonly declines?: readonly string[];
  /** Given, the wallet knows the chain that it is on and those that pages have added, which it puts here. */
  readonly added?: { readonly chainId: string }[];
}

/** The calls that a page made to the wallet, by their methods. */
export type WalletCalls = string[];

/** A wallet as EIP-6963 describes it, in the page. It announces itself at once and when it is asked. */
const ANNOUNCE = `(() => {
  const provider = { request: async ({ method, params = [] }) => {
    const { result, error } = await window.walletRequest(method, params);
    if (error) throw Object.assign(new Error(error.message), { code: error.code });
    return result;
  } };
  const info = { uuid: '350670db-19fa-4704-a166-e52e178b59d2', name: 'Test wallet', icon: 'data:image/svg+xml,', rdns: 'example.wallet' };
  const announce = () => dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }));
  addEventListener('eip6963:requestProvider', announce);
  announce();
})();`;

/** Puts a wallet into a page that really signs. It refuses typed data of another chain than its own, as wallets do. */
export async function addWallet(
  page: Page,
  { privateKey, chainId, declines = [], added }: WalletOptions,
): Promise<WalletCalls> {
  const account = privateKeyToAccount(privateKey);
  const calls: WalletCalls = [];
  let current = chainId;
  const answer = async (method: string, params: readonly unknown[]): Promise<unknown> => {
    if (declines.includes(method)) throw new Error('User rejected the request.');
    if (method === 'eth_requestAccounts') return [account.address];
    if (method === 'eth_chainId') return `0x${current.toString(16)}`;
    if (method === 'wallet_addEthereumChain') {
      added?.push(params[0] as { chainId: string });
      return null;
    }
    if (method === 'wallet_switchEthereumChain') {
      const asked = Number((params[0] as { chainId: string }).chainId);
      const isKnown = !added || added.some((chain) => Number(chain.chainId) === asked);
      if (!isKnown) throw Object.assign(new Error('Unrecognized chain ID.'), { code: 4902 });
      current = asked;
      return null;
    }
    if (method !== 'eth_signTypedData_v4') throw new Error(`there is no method ${method}`);
    const typed = JSON.parse(String(params[1]));
    if (typed.domain.chainId !== current) throw new Error('Provided chainId must match the active chainId');
    if (String(params[0]).toLowerCase() !== account.address.toLowerCase()) throw new Error('another account');
    return account.signTypedData(typed);
  };
  await page.exposeFunction('walletRequest', async (method: string, params: readonly unknown[]) => {
    calls.push(method);
    return answer(method, params).then(
      (result) => ({ result }),
      (error: Error & { code?: number }) => ({ error: { message: error.message, code: error.code ?? 4001 } }),
    );
  });
  await page.addInitScript(ANNOUNCE);
  return calls;
}
