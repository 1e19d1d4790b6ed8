import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { LoopbackServer } from '../../../dev/lightning/lnd-rest.ts';
import { type Answered, type Asked, ok, serveJson } from './json-http.ts';

/** Circle's number for Arc. */
const ARC_DOMAIN = 26;
const MIN_VALIDITY_SECONDS = 604_800;
/** About what a service over the Internet takes for an answer. */
const ANSWER_MS = 100;

/** Any address will do: payers only sign for it. */
export const GATEWAY_WALLET = `0x${'77'.repeat(20)}` as const;

interface Authorization {
  readonly from: string;
  readonly to: string;
  readonly value: string;
  readonly nonce: string;
}

interface Transfer {
  readonly id: string;
  readonly status: 'received';
  readonly token: 'USDC';
  readonly sendingNetwork: string;
  readonly recipientNetwork: string;
  readonly fromAddress: string;
  readonly toAddress: string;
  readonly amount: string;
  readonly nonce: string;
  readonly txHash: null;
}

/** Circle's Gateway as its API is described, as far as a seller asks it: deposits, transfers, settlement. */
export interface Gateway extends LoopbackServer {
  /** Gives a depositor this much to spend, in USDC base units. */
  deposit(depositor: string, units: bigint): void;
  balanceOf(depositor: string): bigint;
  /** How often each of its paths was asked. */
  readonly asked: ReadonlyMap<string, number>;
}

/** Starts the stand-in. Signatures are not looked at: the service has checked them, and what a flood brings fails for want of a deposit. */
export async function startGateway(chainId: number, usdc: string): Promise<Gateway> {
  const network = `eip155:${chainId}`;
  const deposits = new Map<string, bigint>();
  const transfers = new Map<string, Transfer>();
  const asked = new Map<string, number>();
  const balanceOf = (depositor: string) => deposits.get(depositor.toLowerCase()) ?? 0n;
  const byNonce = (from: string, nonce: string) =>
    [...transfers.values()].filter((one) => one.fromAddress === from.toLowerCase() && one.nonce === nonce);

  function settle({ from, to, value, nonce }: Authorization): Answered {
    const refused = (errorReason: string) => ok({ success: false, errorReason, transaction: '', network });
    const payer = from.toLowerCase();
    if (byNonce(payer, nonce).length > 0) return refused('nonce_already_used');
    if (!deposits.has(payer)) return refused('wallet_not_found');
    if (balanceOf(payer) < BigInt(value)) return refused('insufficient_balance');
    deposits.set(payer, balanceOf(payer) - BigInt(value));
    const places = { token: 'USDC', sendingNetwork: network, recipientNetwork: network } as const;
    const parties = { fromAddress: payer, toAddress: to.toLowerCase(), amount: value, nonce };
    const transfer: Transfer = { id: randomUUID(), status: 'received', ...places, ...parties, txHash: null };
    transfers.set(transfer.id, transfer);
    return ok({ success: true, transaction: transfer.id, network, payer });
  }

  /** Decimal USDC, and nothing of who never deposited. */
  function balances(sources: readonly { readonly depositor: string }[]): Answered {
    const known = sources.filter(({ depositor }) => deposits.has(depositor.toLowerCase()));
    const balances = known.map(({ depositor }) => {
      const digits = String(balanceOf(depositor)).padStart(7, '0');
      return { domain: ARC_DOMAIN, depositor, balance: `${digits.slice(0, -6)}.${digits.slice(-6)}` };
    });
    return ok({ token: 'USDC', balances });
  }

  function answer({ method, url, text }: Asked): Answered {
    const transfer = transfers.get(/^\/v1\/x402\/transfers\/([^/]+)$/.exec(url.pathname)?.[1] ?? '');
    if (transfer) return ok(transfer);
    switch (`${method} ${url.pathname}`) {
      case 'GET /v1/x402/supported':
        return ok({ kinds: kindsOf(network, usdc), extensions: [], signers: {} });
      case 'GET /v1/x402/transfers':
        return ok({ transfers: byNonce(url.searchParams.get('from') ?? '', url.searchParams.get('nonce') ?? '') });
      case 'POST /v1/balances':
        return balances(JSON.parse(text).sources);
      case 'POST /v1/x402/verify':
        return ok({ isValid: true });
      case 'POST /v1/x402/settle':
        return settle(JSON.parse(text).paymentPayload.payload.authorization);
      default:
        return { status: 404, text: '{}' };
    }
  }

  const server = await serveJson(async (question) => {
    const { pathname } = question.url;
    asked.set(pathname, (asked.get(pathname) ?? 0) + 1);
    await delay(ANSWER_MS);
    return answer(question);
  });
  return { ...server, asked, balanceOf, deposit: (depositor, units) => deposits.set(depositor.toLowerCase(), units) };
}

/** What it says that it settles. */
function kindsOf(network: string, usdc: string) {
  const extra = {
    name: 'GatewayWalletBatched',
    version: '1',
    verifyingContract: GATEWAY_WALLET,
    minValiditySeconds: MIN_VALIDITY_SECONDS,
    assets: [{ symbol: 'USDC', address: usdc, decimals: 6 }],
  };
  return [{ x402Version: 2, scheme: 'exact', network, extra }];
}
