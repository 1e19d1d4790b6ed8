import { randomBytes } from 'node:crypto';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { createSdkFacilitator } from '../../../scripts/bench/sdk-facilitator.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { createWallet } from '../../../src/payment/relayer/transactions.ts';
import { decodeEip3009 } from '../../../src/payment/usdc/authorization.ts';
import { transferCalldata } from '../../../src/payment/usdc/token.ts';
import { type Answered, type Asked, startStandIn } from '../upstream/http-stand-in.ts';
import { newKey } from './payments.ts';

/** Faults of the first request for each payment. "After" means after the money was moved. */
export const FACILITATOR_FAULTS = [
  'refuses',
  'answers 5xx',
  'answers 5xx after',
  'hangs before',
  'hangs after',
  'answers garbage',
  'answers garbage after',
  'names another network',
  'names a wrong hash',
  'claims a hash that never was',
  'claims success without a transaction',
  'is slow',
  'has its transaction replaced',
] as const;

export type FacilitatorFault = (typeof FACILITATOR_FAULTS)[number];

/** Longer than the time-out of the tests' clients. */
const SLOW_MS = 1500;

const GWEI = 10n ** 9n;
const anyHash = () => bytesToHex(randomBytes(32));
const sleep = (ms: number) => new Promise((next) => setTimeout(next, ms));

async function fundedAccount(network: EmbeddedNetwork) {
  const key = newKey();
  await network.fundNative(key.address, 10n ** 20n);
  return { ...key, hex: bytesToHex(key.privateKey) };
}

/** The SDK's own facilitator over the embedded network, in this process. */
async function sdkFacilitator(network: EmbeddedNetwork) {
  const { rpcUrl, chainId, multicall3 } = network;
  const { hex } = await fundedAccount(network);
  return createSdkFacilitator({ rpcUrl, chainId, multicall3, key: hex, pollMs: 50 });
}

/** Sends a settlement, then another one with the same nonce and a higher fee in its place. Returns the hash of the first. */
async function replacer(network: EmbeddedNetwork) {
  const { hex } = await fundedAccount(network);
  const wallet = createWallet(hex, network.chainId);
  let nonce = 0;
  let replaced = 0;
  const replace = async (payload: Record<string, unknown>): Promise<string> => {
    const data = transferCalldata(decodeEip3009(payload));
    const call = { to: network.usdc, data, gas: 300_000n, nonce: nonce++, maxPriorityFeePerGas: GWEI };
    const first = wallet.sign({ ...call, maxFeePerGas: 100n * GWEI });
    const second = wallet.sign({ ...call, maxFeePerGas: 300n * GWEI, maxPriorityFeePerGas: 3n * GWEI });
    await network.rpc('eth_sendRawTransaction', [first.raw]);
    // If the first is mined already, nothing is replaced, and the returned hash is right.
    const taken = await network.rpc('eth_sendRawTransaction', [second.raw]).catch(() => null);
    if (taken !== null) replaced += 1;
    return first.hash;
  };
  return { replace, replaced: () => replaced };
}

/** A third party's facilitator over HTTP on 127.0.0.1, with faults. */
export async function startLocalFacilitator(network: EmbeddedNetwork, token: string | null = null) {
  const sdk = await sdkFacilitator(network);
  const { replace, replaced } = await replacer(network);
  const caip2 = `eip155:${network.chainId}`;
  let fault: FacilitatorFault | null = null;
  const met = new Set<string>();
  const open = new Set<Promise<unknown>>();

  function settle({ paymentPayload, paymentRequirements }: Asked['body']) {
    const promise = sdk.settle(paymentPayload, paymentRequirements);
    open.add(promise);
    void promise.catch(() => {}).finally(() => open.delete(promise));
    return promise;
  }

  async function settleFaulty(fault: FacilitatorFault, body: Asked['body']): Promise<Answered> {
    const success = { success: true, network: caip2 };
    switch (fault) {
      case 'refuses':
        return { json: { success: false, errorReason: 'insufficient_funds', transaction: '', network: caip2 } };
      case 'answers 5xx':
        return { status: 503, json: { error: 'overloaded' } };
      case 'answers 5xx after':
        await settle(body);
        return {
          status: 502,
          json: { success: false, errorReason: 'invalid_payload', transaction: '', network: caip2 },
        };
      case 'hangs before':
        return null;
      case 'hangs after':
        await settle(body);
        return null;
      case 'answers garbage':
        return { text: '<html>502 Bad Gateway</html>' };
      case 'answers garbage after':
        await settle(body);
        return { text: '{"success":tru' };
      case 'names another network':
        return { json: { ...(await settle(body)), network: 'eip155:1' } };
      case 'names a wrong hash':
        return { json: { ...(await settle(body)), transaction: anyHash() } };
      case 'claims a hash that never was':
        return { json: { ...success, transaction: anyHash() } };
      case 'claims success without a transaction':
        return { json: { ...success, transaction: '' } };
      case 'is slow':
        await sleep(SLOW_MS);
        return { json: await settle(body) };
      case 'has its transaction replaced':
        return { json: { ...success, transaction: await replace(body.paymentPayload.payload) } };
    }
  }

  const server = await startStandIn(async ({ path, headers, body }) => {
    if (path === '/supported') return { json: sdk.getSupported() };
    if (token !== null && headers.authorization !== `Bearer ${token}`)
      return { status: 401, json: { error: 'no token', got: headers.authorization } };
    if (path !== '/settle') return { status: 404, json: {} };
    const nonce = body.paymentPayload.payload.authorization.nonce;
    if (fault === null || met.has(nonce)) return { json: await settle(body) };
    met.add(nonce);
    return settleFaulty(fault, body);
  });

  return {
    url: server.url,
    asked: server.asked,
    /** How many transactions replaced the one whose hash was returned. */
    replaced,
    /** Sets the fault of the first request for each payment; null removes it. */
    fault: (next: FacilitatorFault | null) => {
      fault = next;
    },
    stop: async () => {
      await server.stop();
      await Promise.allSettled(open);
    },
  };
}

export type LocalFacilitator = Awaited<ReturnType<typeof startLocalFacilitator>>;
