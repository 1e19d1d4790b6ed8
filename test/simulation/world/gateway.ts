import { WORLD } from '../engine/owner.ts';
import type { Random } from '../engine/random.ts';
import type { Scheduler } from '../engine/scheduler.ts';
import type { Host, WireAnswer, WireFault, WireRequest } from '../network/wire.ts';
import { type Hex, signerOf } from './chain/keys.ts';
import { domainOf, transferDigest, USDC } from './chain/token.ts';
import { type Handed, readHanded } from './handed.ts';

export const GATEWAY_WALLET: Hex = '0x77777777dcc4d5a8b6e418fd04d8997ef11000ee';
const ORIGIN = 'http://gateway.test';
const MIN_VALIDITY_SECONDS = 604_800n;

/** One payment, as the Gateway tells it. */
export interface Transfer {
  readonly id: string;
  readonly from: Hex;
  readonly to: Hex;
  readonly units: bigint;
  readonly nonce: Hex;
  readonly atMs: number;
  /** Which of two services handed it over; null where the payer did so himself. */
  readonly by: 'main' | 'twin' | null;
  status: 'received' | 'batched' | 'confirmed' | 'completed' | 'failed';
  txHash: Hex | null;
}

/** How the Gateway behaves at present. */
export interface GatewayMood {
  /** Of `/settle`. */
  fault: WireFault | null;
  faultPercent: number;
  /** Of everything else. */
  readFault: WireFault | null;
  /** Answers a settlement with 502, and takes it so much later all the same. */
  lateMs: number;
}

const WELL: Readonly<GatewayMood> = { fault: null, faultPercent: 100, readFault: null, lateMs: 0 };

interface GatewayOptions {
  readonly chainId: number;
  readonly scheduler: Scheduler;
  readonly random: Random;
  onHanded(handed: Handed): void;
}

/** Circle's Gateway: deposits, locked balances, transfers that go to the chain in batches. */
export function createGateway({ chainId, scheduler, random, onHanded }: GatewayOptions) {
  const network = `eip155:${chainId}`;
  const domain = domainOf('GatewayWalletBatched', '1', chainId, GATEWAY_WALLET);
  const deposits = new Map<Hex, bigint>();
  const firstDepositMs = new Map<Hex, number>();
  const transfers: Transfer[] = [];
  const disowned = new Set<string>();
  const disown = ({ terms: { from, nonce } }: Handed) => disowned.add(`${from} ${nonce}`);
  const mood: GatewayMood = { ...WELL };

  const json = (body: object, status = 200): WireAnswer => ({
    status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const refuse = (errorReason: string): WireAnswer => json({ success: false, errorReason, transaction: '', network });

  /** The static checks, in the API's words; the first that fails. */
  function fault(handed: Handed | null): string | null {
    if (!handed?.hasResource) return 'invalid_payload';
    const { terms, signature, payTo, amount } = handed;
    const now = BigInt(Math.floor(scheduler.nowMs() / 1000));
    if (handed.network !== network) return 'unsupported_network';
    if (String(handed.extra.verifyingContract).toLowerCase() !== GATEWAY_WALLET) return 'unsupported_domain';
    if (terms.to !== payTo) return 'address_mismatch';
    if (terms.value !== amount) return 'amount_mismatch';
    if (terms.validAfter > now) return 'authorization_not_yet_valid';
    if (terms.validBefore <= now) return 'authorization_expired';
    if (terms.validBefore < now + MIN_VALIDITY_SECONDS) return 'authorization_validity_too_short';
    if (terms.from === terms.to) return 'self_transfer';
    return signerOf(transferDigest(domain, terms), signature) === terms.from ? null : 'invalid_signature';
  }

  function settle(handed: Handed | null, by: Transfer['by']): WireAnswer {
    const wrong = fault(handed);
    if (wrong !== null || !handed) return refuse(wrong ?? 'invalid_payload');
    const { from, to, value, nonce } = handed.terms;
    if (transfers.some((one) => one.from === from && one.nonce === nonce)) return refuse('nonce_already_used');
    const balance = deposits.get(from);
    if (balance === undefined) return refuse('wallet_not_found');
    if (balance < value) return refuse('insufficient_balance');
    deposits.set(from, balance - value);
    const id = uuidOf(random.bytes(16));
    transfers.push({
      id,
      from,
      to,
      units: value,
      nonce,
      atMs: scheduler.nowMs(),
      by,
      status: 'received',
      txHash: null,
    });
    return json({ success: true, transaction: id, network, payer: from });
  }

  const shown = ({ id, status, from, to, units, nonce, txHash }: Transfer): object => ({
    id,
    status,
    token: 'USDC',
    sendingNetwork: network,
    recipientNetwork: network,
    txHash,
    fromAddress: from,
    toAddress: to,
    amount: String(units),
    nonce,
  });

  function supported(): WireAnswer {
    const extra = { name: 'GatewayWalletBatched', version: '1', verifyingContract: GATEWAY_WALLET };
    const more = {
      minValiditySeconds: Number(MIN_VALIDITY_SECONDS),
      assets: [{ symbol: 'USDC', address: USDC, decimals: 6 }],
    };
    return json({
      kinds: [{ x402Version: 2, scheme: 'exact', network, extra: { ...extra, ...more } }],
      extensions: [],
      signers: {},
    });
  }

  function balances(body: string): WireAnswer {
    const { sources = [] } = JSON.parse(body || '{}') as { sources?: { depositor?: string; domain?: number }[] };
    const reported = sources.map(({ depositor = '', domain: at = 26 }) => {
      const units = deposits.get(depositor.toLowerCase() as Hex) ?? 0n;
      const text = `${units / 1_000_000n}.${String(units % 1_000_000n).padStart(6, '0')}`;
      return { domain: at, depositor, balance: text, pendingBatch: '0.000000' };
    });
    return json({ token: 'USDC', balances: reported });
  }

  function serve({ method, path, body, from }: WireRequest): WireAnswer {
    const [route = '', query = ''] = path.split('?');
    const id = /^\/v1\/x402\/transfers\/([^/]+)$/.exec(route)?.[1];
    if (id !== undefined) {
      const found = transfers.find((one) => one.id === id);
      return found ? json(shown(found)) : json({}, 404);
    }
    switch (`${method} ${route}`) {
      case 'GET /v1/x402/supported':
        return supported();
      case 'GET /v1/x402/transfers': {
        const asked = new URLSearchParams(query);
        const fits = (name: string, had: string) => asked.get(name) === null || asked.get(name)?.toLowerCase() === had;
        const found = transfers.filter(
          (one) => fits('from', one.from) && fits('to', one.to) && fits('nonce', one.nonce),
        );
        return json({ transfers: found.map(shown) });
      }
      case 'POST /v1/x402/verify': {
        const wrong = fault(readHanded(body));
        return json(wrong === null ? { isValid: true } : { isValid: false, invalidReason: wrong });
      }
      case 'POST /v1/x402/settle': {
        const handed = readHanded(body);
        if (handed) onHanded(handed);
        const by = from.name.startsWith('twin') ? 'twin' : 'main';
        if (mood.lateMs === 0) {
          const answer = settle(handed, by);
          if (handed && !answer.body.includes('"success":true') && !answer.body.includes('already_used'))
            disown(handed);
          return answer;
        }
        if (handed) disown(handed);
        scheduler.after(mood.lateMs, WORLD, 'the gateway settles late', () => void settle(handed, by));
        return { status: 502, body: 'bad gateway' };
      }
      case 'POST /v1/balances':
        return balances(body);
      default:
        return json({}, 404);
    }
  }

  const host: Host = {
    serve: (request, answer) => answer(serve(request)),
    fault: ({ path, body }) => {
      if (path !== '/v1/x402/settle') return mood.readFault;
      const fault = mood.fault && random.chance(mood.faultPercent / 100) ? mood.fault : null;
      const handed = fault && readHanded(body);
      if (handed) disown(handed);
      return fault;
    },
    latencyMs: [5, 40],
  };
  return {
    origin: ORIGIN,
    host,
    mood,
    domain,
    network,
    transfers: (): readonly Transfer[] => transfers,
    /** Puts so much in; a negative amount is spent elsewhere, as far as it is there. */
    deposit: (payer: Hex, units: bigint): void => {
      const left = (deposits.get(payer) ?? 0n) + units;
      deposits.set(payer, left < 0n ? 0n : left);
      if (!firstDepositMs.has(payer)) firstDepositMs.set(payer, scheduler.nowMs());
    },
    /** Whether a payer had ever deposited something by then. */
    hadDeposit: (payer: Hex, atMs: number): boolean => (firstDepositMs.get(payer) ?? Number.POSITIVE_INFINITY) <= atMs,
    /** Whether somebody who handed this payment over was left without an answer, or refused: from then on it takes any transfer for its own. */
    isDisowned: (payer: Hex, nonce: Hex): boolean => disowned.has(`${payer} ${nonce}`),
    /** A payer hands over an authorization past the service. */
    settle: (handed: Handed): void => void settle(handed, null),
    batch: () => {
      const txHash: Hex = `0x${random.bytes(32).toString('hex')}`;
      for (const one of transfers) if (one.status === 'received') Object.assign(one, { status: 'confirmed', txHash });
    },
    heal: () => void Object.assign(mood, WELL),
  };
}

export type Gateway = ReturnType<typeof createGateway>;

function uuidOf(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
