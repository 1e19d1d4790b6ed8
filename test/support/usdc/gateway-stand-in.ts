import { randomBytes, randomUUID } from 'node:crypto';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import { decodeEip3009 } from '../../../src/payment/usdc/authorization.ts';
import { createGatewaySignatureCheck } from '../../../src/payment/usdc/gateway.ts';
import { createHold } from '../hold.ts';
import { type Answered, type Asked, startStandIn } from '../upstream/http-stand-in.ts';
import { USDC } from './payments.ts';

/** Faults of the first request for each payment. "After" means after the payer's balance was locked. */
export const GATEWAY_FAULTS = [
  'refuses',
  'answers 5xx',
  'answers 5xx after',
  'hangs before',
  'hangs after',
  'answers garbage',
  'answers garbage after',
  'names another network',
  'names a transfer of another',
  'claims success without a transaction',
  'claims a transfer that never was',
  'is slow',
] as const;

export type GatewayFault = (typeof GATEWAY_FAULTS)[number];

/** What the test says in the place of the service. */
type Script = (asked: Asked) => Answered;

interface Transfer {
  id: string;
  status: 'received' | 'batched' | 'confirmed' | 'completed' | 'failed';
  token: 'USDC';
  sendingNetwork: string;
  recipientNetwork: string;
  fromAddress: string;
  toAddress: string;
  amount: string;
  nonce: string;
  txHash: string | null;
  createdAt: string;
  updatedAt: string;
}

const MIN_VALIDITY_SECONDS = 604_800;
/** Circle's number for Arc. */
const ARC_DOMAIN = 26;
/** Longer than the time-out of the tests' clients. */
const SLOW_MS = 1500;
const sleep = (ms: number) => new Promise((next) => setTimeout(next, ms));

/** Circle's Gateway by its API's documentation: deposits, locked balances, transfers and batches, with faults. */
export async function startGatewayStandIn(chainId: number, wallet: `0x${string}`) {
  const network = `eip155:${chainId}`;
  const deposits = new Map<string, bigint>();
  const transfers = new Map<string, Transfer>();
  const checkSignature = createGatewaySignatureCheck(chainId, wallet);
  const met = new Set<string>();
  const scripts = new Map<string, Script>();
  let fault: GatewayFault | null = null;
  const { passed, hold } = createHold();

  /** The static checks. Returns the API's error code of the first that fails. */
  async function staticFault({ paymentPayload, paymentRequirements: asked }: Asked['body']): Promise<string | null> {
    if (!paymentPayload?.resource?.url || !paymentPayload?.payload || !asked) return 'invalid_payload';
    if (asked.scheme !== 'exact') return 'unsupported_scheme';
    if (asked.network !== network) return 'unsupported_network';
    if (asked.asset.toLowerCase() !== USDC) return 'unsupported_asset';
    if (asked.extra?.verifyingContract?.toLowerCase() !== wallet) return 'unsupported_domain';
    const authorization = decodeEip3009(paymentPayload.payload);
    const now = Math.floor(Date.now() / 1000);
    if (bytesToHex(authorization.to) !== asked.payTo.toLowerCase()) return 'address_mismatch';
    if (authorization.value !== BigInt(asked.amount)) return 'amount_mismatch';
    if (authorization.validAfter > now) return 'authorization_not_yet_valid';
    if (authorization.validBefore <= now) return 'authorization_expired';
    if (authorization.validBefore < now + MIN_VALIDITY_SECONDS) return 'authorization_validity_too_short';
    if (bytesToHex(authorization.to) === bytesToHex(authorization.from)) return 'self_transfer';
    const refused = await checkSignature(authorization).catch((error: unknown) => error);
    return refused instanceof PaymentRefused ? 'invalid_signature' : null;
  }

  function refusal(errorReason: string): object {
    return { success: false, errorReason, transaction: '', network };
  }

  async function settle(body: Asked['body']): Promise<object> {
    const wrong = await staticFault(body);
    if (wrong !== null) return refusal(wrong);
    const { from, to, value, nonce } = body.paymentPayload.payload.authorization;
    const payer = from.toLowerCase();
    const known = [...transfers.values()].some((one) => one.nonce === nonce && one.fromAddress === payer);
    if (known) return refusal('nonce_already_used');
    const balance = deposits.get(payer);
    if (balance === undefined) return refusal('wallet_not_found');
    if (balance < BigInt(value)) return refusal('insufficient_balance');
    deposits.set(payer, balance - BigInt(value));
    const at = new Date().toISOString();
    const transfer: Transfer = {
      id: randomUUID(),
      status: 'received',
      token: 'USDC',
      txHash: null,
      createdAt: at,
      updatedAt: at,
      sendingNetwork: network,
      recipientNetwork: network,
      fromAddress: payer,
      nonce,
      toAddress: to.toLowerCase(),
      amount: value,
    };
    transfers.set(transfer.id, transfer);
    return { success: true, transaction: transfer.id, network, payer };
  }

  async function settleFaulty(met: GatewayFault, body: Asked['body']): Promise<Answered> {
    const success = { success: true, network };
    switch (met) {
      case 'refuses':
        return { json: refusal('insufficient_balance') };
      case 'answers 5xx':
        return { status: 500, json: refusal('unexpected_error') };
      case 'answers 5xx after':
        await settle(body);
        return { status: 504, json: refusal('insufficient_balance') };
      case 'hangs before':
        return null;
      case 'hangs after':
        await settle(body);
        return null;
      case 'answers garbage':
        return { text: '' };
      case 'answers garbage after':
        await settle(body);
        return { text: '{"success":tru' };
      case 'names another network':
        return { json: { ...(await settle(body)), network: 'eip155:1' } };
      case 'names a transfer of another':
        await settle(body);
        return { json: { ...success, transaction: [...transfers.keys()][0] } };
      case 'claims success without a transaction':
        return { json: { ...success, transaction: '' } };
      case 'claims a transfer that never was':
        return { json: { ...success, transaction: randomUUID() } };
      case 'is slow':
        await sleep(SLOW_MS);
        return { json: await settle(body) };
    }
  }

  function search(query: URLSearchParams): Answered {
    const [from, to, nonce] = [query.get('from'), query.get('to'), query.get('nonce')];
    if (from === null && to === null && nonce === null) return { status: 400, json: { message: 'from, to or nonce' } };
    const found = [...transfers.values()].filter(
      (one) =>
        (from === null || one.fromAddress === from.toLowerCase()) &&
        (to === null || one.toAddress === to.toLowerCase()) &&
        (nonce === null || one.nonce === nonce),
    );
    return { json: { transfers: found } };
  }

  /** As in the API: decimal USDC, without accounts that never deposited. */
  function balancesOf(sources: { domain: number; depositor: string }[]): object[] {
    return sources.flatMap(({ domain, depositor }) => {
      const units = domain === ARC_DOMAIN ? deposits.get(depositor.toLowerCase()) : undefined;
      if (units === undefined) return [];
      const digits = String(units).padStart(7, '0');
      return [{ domain, depositor, balance: `${digits.slice(0, -6)}.${digits.slice(-6)}`, pendingBatch: '0' }];
    });
  }

  const kind = {
    x402Version: 2,
    scheme: 'exact',
    network,
    extra: {
      name: 'GatewayWalletBatched',
      version: '1',
      verifyingContract: wallet,
      minValiditySeconds: MIN_VALIDITY_SECONDS,
      assets: [{ symbol: 'USDC', address: USDC, decimals: 6 }],
    },
  };

  const server = await startStandIn(async (asked) => {
    const { method, path, query, body } = asked;
    const script = scripts.get(path);
    if (script) return script(asked);
    const id = /^\/v1\/x402\/transfers\/([^/]+)$/.exec(path)?.[1];
    if (id !== undefined) return transfers.has(id) ? { json: transfers.get(id) } : { status: 404, json: {} };
    switch (`${method} ${path}`) {
      case 'GET /v1/x402/supported':
        return { json: { kinds: [kind], extensions: [], signers: {} } };
      case 'GET /v1/x402/transfers':
        return search(query);
      case 'POST /v1/balances':
        return { json: { token: 'USDC', balances: balancesOf(body.sources) } };
      case 'POST /v1/x402/verify': {
        const wrong = await staticFault(body);
        return { json: wrong === null ? { isValid: true } : { isValid: false, invalidReason: wrong } };
      }
      case 'POST /v1/x402/settle': {
        await passed();
        const nonce = body.paymentPayload.payload.authorization.nonce;
        if (fault === null || met.has(nonce)) return { json: await settle(body) };
        met.add(nonce);
        return settleFaulty(fault, body);
      }
      default:
        return { status: 404, json: {} };
    }
  });

  const advance = (status: Transfer['status'], txHash: string | null) => {
    for (const one of transfers.values()) if (one.status !== 'failed') Object.assign(one, { status, txHash });
  };

  return {
    url: server.url,
    asked: server.asked,
    network,
    /** Deposits USDC (base units) for a payer. */
    deposit: (payer: string, units: bigint) => {
      const key = payer.toLowerCase();
      deposits.set(key, (deposits.get(key) ?? 0n) + units);
    },
    depositOf: (payer: string): bigint => deposits.get(payer.toLowerCase()) ?? 0n,
    /** The amount credited to a seller, in base units. */
    creditOf: (seller: string): bigint =>
      [...transfers.values()]
        .filter((one) => one.toAddress === seller.toLowerCase() && one.status !== 'failed')
        .reduce((sum, { amount }) => sum + BigInt(amount), 0n),
    transfers: (): readonly Transfer[] => [...transfers.values()],
    /** Says that all transfers went to the chain in one transaction: this one, or one that no chain has. Returns its hash. */
    batch: (hash: string = bytesToHex(randomBytes(32))): string => {
      advance('confirmed', hash);
      return hash;
    },
    /** Fails a transfer after it was accepted. */
    giveUp: (id: string) => {
      const transfer = transfers.get(id);
      if (transfer) transfer.status = 'failed';
    },
    /** Holds every settlement. */
    hold,
    /** Answers all requests for a path in the service's place; null ends that. */
    script: (path: string, answer: Script | null) => {
      if (answer) scripts.set(path, answer);
      else scripts.delete(path);
    },
    /** Sets the fault of the first request for each payment; null removes it. */
    fault: (next: GatewayFault | null) => {
      fault = next;
    },
    stop: server.stop,
  };
}

export type GatewayStandIn = Awaited<ReturnType<typeof startGatewayStandIn>>;
