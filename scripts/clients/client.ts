import type { EmbeddedNetwork } from '../../dev/network.ts';
import type { Wallet } from './shop.ts';

/** Where one and the same route is sold. */
export const SURFACES = ['/v1/paid', '/v1/mpp', '/v1/lightning', '/mcp'] as const;
export type Surface = (typeof SURFACES)[number];

/** One purchase that a client is asked for. */
export interface Errand {
  readonly surface: Surface;
  readonly origin: string;
  /** The route, or the address of the tools server. */
  readonly url: string;
  /** The request to send. A tool is called by POST. */
  readonly init: RequestInit;
  readonly network: EmbeddedNetwork;
  readonly wallet: Wallet;
}

/** The answer as the client hands it to its caller. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** A client that is in use, unmodified. */
export interface Client {
  /** Its package, and how it is set up where that matters. */
  readonly name: string;
  /** The package whose version the table shows. Null where it is part of the name. */
  readonly package: string;
  /** Buys once. Throws whatever the client throws. */
  buy(errand: Errand): Promise<Answer>;
}

/** Reads a response to its end. */
export async function answerOf(response: Response): Promise<Answer> {
  return { status: response.status, headers: response.headers, body: await response.text() };
}

/** The most that a client signs for in one call: ten times the price of the route. In base units. */
const MAX_UNITS = 5000n;

/** What a stock client of x402 may pay with on an errand, and how much. */
export function termsOf({ network, wallet }: Errand) {
  return {
    privateKey: wallet.account.privateKey,
    asset: network.usdc,
    maxUnits: MAX_UNITS,
    network: `eip155:${network.chainId}` as const,
  };
}
