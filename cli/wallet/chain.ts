import { keccak256 } from '../../src/lib/secp256k1.ts';
import { isObject } from '../../src/lib/untrusted.ts';
import { usdcOn } from '../money.ts';
import type { Wallet } from './record.ts';

// What the buyer reads of the chain, at an endpoint of its own choice: what has become of expired authorizations, and
// what
// the wallet holds.

/** Time-out of one answer, in milliseconds. */
const TIMEOUT_MS = 15_000;

/** Asks the endpoint. Rejects for no answer, and for an error. */
async function ask(rpcUrl: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const headers = { 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  // Without its cause: an address that cannot be asked is repeated in it, and may hold a key.
  const answer = await fetch(rpcUrl, { method: 'POST', headers, body, signal, redirect: 'error' }).catch(() => {
    throw new Error(`RPC_URL gives no answer to ${method}`);
  });
  const said: unknown = await answer.json();
  if (!isObject(said) || said.result === undefined || said.result === null)
    throw new Error(`RPC_URL does not answer ${method}`);
  return said.result;
}

/** The 4 bytes that name a function of a contract. */
const selector = (signature: string): string =>
  Buffer.from(keccak256(Buffer.from(signature, 'ascii')))
    .toString('hex')
    .slice(0, 8);
const word = (hex: string): string => hex.replace(/^0x/, '').toLowerCase().padStart(64, '0');

/** `method(address, second)` of a contract at a block, as a number. */
async function call(
  rpcUrl: string,
  to: string,
  words: { readonly name: string; readonly args: readonly string[] },
  block: string,
) {
  const data = `0x${selector(words.name)}${words.args.map(word).join('')}`;
  const result = await ask(rpcUrl, 'eth_call', [{ to, data }, block]);
  if (typeof result !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(result)) throw new Error('RPC_URL answers no number');
  return BigInt(result);
}

/** As deep as a block of a chain without a final one is taken for good. */
const DEEP = 64n;

async function blockAt(rpcUrl: string, name: string) {
  const block = await ask(rpcUrl, 'eth_getBlockByNumber', [name, false]);
  if (!isObject(block)) throw new Error('RPC_URL shows no block');
  return { number: BigInt(String(block.number)), time: Number(BigInt(String(block.timestamp))) };
}

/** The time of a block that no reorganisation takes back: the final one, or one far below the newest. */
async function settledTime(rpcUrl: string, newest: bigint): Promise<number> {
  const final = await blockAt(rpcUrl, 'finalized').catch(() => null);
  if (final) return final.time;
  if (newest < DEEP) return 0;
  return (await blockAt(rpcUrl, `0x${(newest - DEEP).toString(16)}`)).time;
}

/**
 * Gives back every authorization that has expired and was not used, by what the contract says at the newest block, once
 * a block that stays is past `validBefore`: no later block can use it. A used or cancelled one is noted, and stays spent.
 * One that cannot be looked up now stays as it is. Returns how many were given back.
 */
export async function sweepExpired(wallet: Wallet, rpcUrl: string): Promise<number> {
  const network = `eip155:${BigInt(String(await ask(rpcUrl, 'eth_chainId', [])))}`;
  const rows = wallet.expired(network);
  if (rows.length === 0) return 0;
  const newest = await blockAt(rpcUrl, 'latest');
  const number = `0x${newest.number.toString(16)}`;
  // The chain goes on meanwhile, so the final block may come after the newest one that is read.
  const time = Math.min(newest.time, await settledTime(rpcUrl, newest.number));
  let given = 0;
  for (const { id, asset, payer, reference, expiresAt } of rows) {
    if (expiresAt === null || time <= expiresAt) continue;
    const name = 'authorizationState(address,bytes32)';
    const state = await call(rpcUrl, asset, { name, args: [payer, reference] }, number);
    if (state === 0n) {
      wallet.giveBack(id);
      given += 1;
    } else wallet.used(id);
  }
  return given;
}

/** The wallet's USDC on the endpoint's chain, in base units. Null where USDC there is not known here. */
export async function usdcBalance(rpcUrl: string, address: string): Promise<bigint | null> {
  const asset = usdcOn(`eip155:${BigInt(String(await ask(rpcUrl, 'eth_chainId', [])))}`);
  return asset === null ? null : call(rpcUrl, asset, { name: 'balanceOf(address)', args: [address] }, 'latest');
}

/** What an address has in the Gateway's contract, in base units. Rejects where the endpoint is of another chain. */
export async function gatewayBalance(
  rpcUrl: string,
  { network, wallet, asset, address }: { network: string; wallet: string; asset: string; address: string },
): Promise<bigint> {
  const found = `eip155:${BigInt(String(await ask(rpcUrl, 'eth_chainId', [])))}`;
  if (found !== network) throw new Error(`RPC_URL is on ${found}, the offer on ${network}`);
  return call(rpcUrl, wallet, { name: 'availableBalance(address,address)', args: [asset, address] }, 'latest');
}
