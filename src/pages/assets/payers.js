import { typedDataOf } from './authorization.js';

// Finds what can pay in this browser: its wallets (EIP-6963), and a demo's buyer. Nothing leaves the page unasked.

/** @typedef {{ scheme: string, network: string, amount: string, asset: string, payTo: string, maxTimeoutSeconds: number, extra?: Record<string, unknown> }} Requirement */
/** @typedef {import('./authorization.js').Authorization} Authorization */
/** @typedef {{ signature: string, authorization: Authorization }} Signed */
/** @typedef {{ id: string, name: string, sign(requirement: Requirement): Promise<Signed> }} Payer */
/** @typedef {{ request(call: { method: string, params?: unknown[] }): Promise<unknown> }} Provider */

/** The longest name of a wallet, in characters. */
const MAX_NAME = 40;

/** Calls back once for each payer, for late wallets too. @param {(payer: Payer) => void} onPayer */
export function findPayers(onPayer) {
  const demo = document.querySelector('[data-demo-buyer]');
  if (demo instanceof HTMLElement && demo.dataset.demoBuyer) onPayer(demoBuyer(demo.dataset.demoBuyer));
  /** @type {Set<string>} */
  const known = new Set();
  addEventListener('eip6963:announceProvider', (event) => {
    const { info, provider } = /** @type {CustomEvent} */ (event).detail ?? {};
    if (typeof info?.uuid !== 'string' || typeof info.name !== 'string' || !provider || known.has(info.uuid)) return;
    known.add(info.uuid);
    onPayer({
      id: info.uuid,
      name: info.name.slice(0, MAX_NAME),
      sign: (requirement) => signInWallet(provider, requirement),
    });
  });
  dispatchEvent(new Event('eip6963:requestProvider'));
}

/** Asks a wallet for an account on the payment's chain, and for its signature. */
async function signInWallet(/** @type {Provider} */ provider, /** @type {Requirement} */ requirement) {
  const [from] = /** @type {string[]} */ (await provider.request({ method: 'eth_requestAccounts' }));
  if (from === undefined) throw new Error('The wallet gave no account.');
  await switchChain(provider, Number(requirement.network.split(':')[1]));
  const { authorization, typedData } = typedDataOf(requirement, from);
  const params = [from, JSON.stringify(typedData)];
  const signature = String(await provider.request({ method: 'eth_signTypedData_v4', params }));
  return { signature, authorization };
}

/** What a wallet says of a chain that it does not know (EIP-3326). Some wallets wrap the error. */
const UNKNOWN_CHAIN = 4902;

// Wallets refuse to sign for another chain than their own. One that lacks the chain is offered it.
/** @param {Provider} provider @param {number} chainId */
async function switchChain(provider, chainId) {
  if (await isOn(provider, chainId)) return;
  const params = [{ chainId: `0x${chainId.toString(16)}` }];
  const change = () => provider.request({ method: 'wallet_switchEthereumChain', params });
  await change()
    .catch(async (error) => {
      if (![error?.code, error?.data?.originalError?.code].includes(UNKNOWN_CHAIN)) throw error;
      await addChain(provider, chainId);
      // A wallet may change to a chain that it has added, and need not (EIP-3085).
      if (!(await isOn(provider, chainId))) await change();
    })
    .catch((error) => {
      const why = error?.message ?? error;
      throw new Error(`The wallet is on another chain and did not change to chain ${chainId}: ${why}`);
    });
}

/** @param {Provider} provider @param {number} chainId */
async function isOn(provider, chainId) {
  return Number(await provider.request({ method: 'eth_chainId' })) === chainId;
}

/** Offers the page's chain to a wallet (EIP-3085). @param {Provider} provider @param {number} chainId */
async function addChain(provider, chainId) {
  const place = document.querySelector('[data-chain]');
  const chain = place instanceof HTMLElement ? JSON.parse(place.dataset.chain ?? 'null') : null;
  if (Number(chain?.chainId) !== chainId)
    throw new Error('it does not know the chain, and this service names no public RPC URL of it. Add it by hand');
  await provider.request({ method: 'wallet_addEthereumChain', params: [chain] });
}

/** The demo's own buyer, whose key the service has. @param {string} path @returns {Payer} */
function demoBuyer(path) {
  return {
    id: 'demo',
    name: 'the demo’s buyer',
    sign: async (requirement) => {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(path, { method: 'POST', headers, body: JSON.stringify({ accepted: requirement }) });
      const body = await answer.json();
      if (!answer.ok) throw new Error(body.detail ?? `The demo’s buyer answered ${answer.status}.`);
      return body;
    },
  };
}
