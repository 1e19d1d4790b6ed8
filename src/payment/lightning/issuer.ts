import { randomBytes } from 'node:crypto';
import { Unavailable, UpstreamFailed } from '../../errors.ts';
import { type Clock, nowSeconds } from '../../lib/clock.ts';
import { ExchangeFailed, withinDeadline } from '../../upstream/client/failure.ts';
import { clientGone } from '../checkout.ts';
import type { Binding } from './binding.ts';
import { decodeInvoice, type Invoice } from './bolt11.ts';
import { createNodeWatch, type NodeLog } from './node-watch.ts';
import type { Receiver } from './nodes/receiver.ts';
import { type LightningNetwork, SKEW_SECONDS } from './terms.ts';

// Gets invoices from one node. Its answers are untrusted: the node may be broken, or not ours. An invoice that fails
// the scheme's checks is never offered and counts as an outage; after a failure the node gets no requests for a while.

interface IssuerOptions {
  readonly receiver: Receiver;
  readonly network: LightningNetwork;
  /** 66 hex characters. Null accepts the first key that the node reports. */
  readonly expectedKey: string | null;
  readonly expirySeconds: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: NodeLog;
}

interface InvoiceRequest {
  readonly amountMsat: bigint;
  readonly binding: Binding;
}

interface Issued {
  readonly text: string;
  readonly invoice: Invoice;
}

export interface Issuer {
  /** The key that signs invoices, 66 hex characters; null while it is unknown. */
  payTo(): string | null;
  /** Throws Unavailable (`lightning_unavailable`) when `issue` would throw it without a request. */
  checkAvailable(): void;
  /** A new invoice for exactly this amount and request. Throws Unavailable with the time to try again. */
  issue(request: InvoiceRequest, signal: AbortSignal): Promise<Issued>;
  /** Whether the node has received the payment. Throws Unavailable when the node cannot be asked. */
  isPaid(paymentHash: Uint8Array, signal: AbortSignal): Promise<boolean>;
  status(): { ok: boolean; detail?: string };
  /** Rejects with TooMuchPower; then the service must not run. A node that is away is retried in the background. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** More than the default limits allow within the lifetime of an invoice. */
const REMEMBERED = 20_000;

function cannotAsk(): Unavailable {
  const detail = 'The Lightning node cannot be asked whether this was paid; present the same payment again.';
  return new Unavailable('lightning_unavailable', detail);
}

function lostConnection(error: unknown): boolean {
  return error instanceof UpstreamFailed && error.cause instanceof ExchangeFailed && error.cause.connectionLost;
}

// Once more when the connection is lost: a node closes idle ones. A lost invoice costs nothing: no client saw it.
async function requestInvoice(
  { receiver, expirySeconds }: IssuerOptions,
  { amountMsat, binding }: InvoiceRequest,
  signal: AbortSignal,
): Promise<string> {
  const once = () => {
    const label = `percall-${randomBytes(12).toString('hex')}`;
    const { canonical, hash } = binding;
    return receiver.createInvoice({ amountMsat, binding: canonical, requestHash: hash, expirySeconds, label }, signal);
  };
  return once().catch((error: unknown) => {
    if (!lostConnection(error) || signal.aborted) throw error;
    return once();
  });
}

export function createIssuer(options: IssuerOptions): Issuer {
  const { receiver, network, expirySeconds, timeoutMs, clock, log } = options;
  const watch = createNodeWatch(options, receiver, options.expectedKey, timeoutMs);
  const hashes = createRecentHashes(REMEMBERED);

  function faultOf(invoice: Invoice | null, amountMsat: bigint, binding: Binding): string | null {
    if (!invoice) return 'it cannot be decoded';
    const payTo = watch.key() ?? '';
    const requested = { currency: network.currency, amountMsat, requestHash: binding.hash, expirySeconds, payTo };
    const fault = issuedFault(invoice, requested, nowSeconds(clock));
    return fault ?? (hashes.add(invoice.paymentHash) ? null : 'its payment hash was used before');
  }

  /** A departure of the caller, a full queue of ours and a bug of ours do not count as failures of the node. */
  function ask<T>(
    signal: AbortSignal,
    question: (within: AbortSignal) => Promise<T>,
    nodeFailed: (error: unknown) => Unavailable,
  ): Promise<T> {
    return withinDeadline(timeoutMs, signal, question).catch((error: unknown) => {
      if (signal.aborted) throw clientGone();
      throw error instanceof UpstreamFailed || error instanceof ExchangeFailed ? nodeFailed(error) : error;
    });
  }

  return {
    payTo: watch.key,
    checkAvailable: watch.check,
    async issue({ amountMsat, binding }, signal) {
      watch.check();
      const text = await ask(
        signal,
        (within) => requestInvoice(options, { amountMsat, binding }, within),
        watch.failed,
      );
      const invoice = decodeInvoice(text);
      const fault = faultOf(invoice, amountMsat, binding);
      if (fault !== null || !invoice) {
        log.error({ receiver: receiver.kind, fault }, 'the Lightning node made an invoice that must not be offered');
        throw watch.failed(new Error(`it made an invoice that must not be offered: ${fault}`));
      }
      // Another request may have shown meanwhile that this node must not be used at all.
      if (!watch.isOurs()) throw watch.unavailable();
      watch.succeeded();
      return { text, invoice };
    },
    async isPaid(paymentHash, signal) {
      if (!watch.isOurs()) throw watch.unavailable();
      return ask(signal, (within) => receiver.isPaid(paymentHash, within), cannotAsk);
    },
    status: watch.status,
    start: watch.start,
    stop: async () => {
      await watch.stop();
      await receiver.close();
    },
  };
}

interface RequestedInvoice {
  readonly currency: Invoice['currency'];
  readonly amountMsat: bigint;
  readonly requestHash: Uint8Array;
  readonly expirySeconds: number;
  /** 66 hex characters. */
  readonly payTo: string;
}

/** The scheme's checks before a challenge is sent. A value equal to a bound is valid. `now` is Unix seconds. */
export function issuedFault(invoice: Invoice, requested: RequestedInvoice, now: number): string | null {
  const [hash, ...others] = invoice.descriptionHashes;
  if (invoice.currency !== requested.currency) return 'it is of another network';
  if (invoice.amountMsat !== requested.amountMsat) return 'its amount is another';
  if (invoice.hasDescription) return 'it has an inline description';
  if (hash === undefined || others.length > 0) return 'it does not have exactly one description hash';
  if (Buffer.compare(hash, requested.requestHash) !== 0) return 'its description hash is another';
  if (Buffer.from(invoice.payee).toString('hex') !== requested.payTo) return 'it is signed by another key';
  if (invoice.expirySeconds !== requested.expirySeconds) return 'its expiry is another';
  if (invoice.createdAt > now + SKEW_SECONDS) return 'it was created in the future';
  if (invoice.createdAt + invoice.expirySeconds < now) return 'it has expired';
  return null;
}

/** `add` returns whether a hash is new. After a restart, the ledger's key still refuses a used hash. */
export function createRecentHashes(max: number) {
  const seen = new Set<string>();
  return {
    add(hash: Uint8Array): boolean {
      const key = Buffer.from(hash).toString('base64');
      if (seen.has(key)) return false;
      seen.add(key);
      const oldest = seen.size > max ? seen.values().next().value : undefined;
      if (oldest !== undefined) seen.delete(oldest);
      return true;
    },
  };
}
