import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../../../src/catalogue/endpoint.ts';
import type { Query } from '../../../src/catalogue/params.ts';
import { listedPath } from '../../../src/catalogue/paths.ts';
import type { Ask, Target } from '../../../src/payment/call.ts';
import { callOf, type RailFor, type Running } from '../../../src/payment/checkout.ts';
import { decodePayment } from '../../../src/payment/protocols/x402/http.ts';
import type { UsdcCall } from '../../../src/payment/rail.ts';

interface Asking {
  readonly target?: Target;
  readonly query?: Query;
  readonly client?: string;
  readonly identity?: string;
  readonly signal?: AbortSignal;
}

/** A request of a client `c`, by default over HTTP. */
export function askOf(asking: Asking = {}): Ask {
  const { client = 'c', identity = client, signal = new AbortController().signal, query = {} } = asking;
  const { target = { kind: 'http', method: 'GET', url: '/', hasBody: false } } = asking;
  return { target, query, client: () => client, identity: () => identity, signal: () => signal };
}

/** The same sources for every run of an endpoint. */
export function runningWith<S>(sources: S, handlerTimeoutMs = 15_000): Running<S> {
  return { sources: { sale: sources, offer: sources, admit: sources }, handlerTimeoutMs };
}

/** Sources that say for what an endpoint runs. An endpoint that reads none may be given these. */
export const SOURCES_OF = { sale: { of: 'sale' }, offer: { of: 'offer' }, admit: { of: 'admit' } } as const;

/** As `runningWith`, with other sources for each purpose. */
export function runningByPurpose<S>(handlerTimeoutMs: number): Running<S> {
  return { sources: SOURCES_OF as never, handlerTimeoutMs };
}

/** A call that is sold in USDC. */
export function usdcCallOf<S>(
  endpoint: Endpoint<S>,
  plain: PaymentRequirements,
  { asking, running }: { asking?: Asking; running: Running<S> },
): UsdcCall {
  return { ...callOf(endpoint, listedPath(endpoint), askOf(asking), running), plain };
}

/** Sells a call for the payment in a PAYMENT-SIGNATURE header. */
export async function sellFor(railFor: RailFor, call: UsdcCall, header: string) {
  const credential = decodePayment(header);
  return railFor(credential.accepted ?? call.plain).sell(call, credential);
}
