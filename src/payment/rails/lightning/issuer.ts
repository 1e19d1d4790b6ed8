import { randomBytes } from 'node:crypto';
import { Unavailable, UpstreamFailed } from '../../../errors.ts';
import { type Clock, nowSeconds } from '../../../lib/clock.ts';
import { withinDeadline } from '../../../upstream/client/deadline.ts';
import { ExchangeFailed } from '../../../upstream/client/failure.ts';
import type { Binding } from '../../lnbtc/binding.ts';
import { decodeInvoice, type Invoice } from '../../lnbtc/bolt11.ts';
import type { LightningNetwork } from '../../lnbtc/networks.ts';
import { clientGone } from '../../run-endpoint.ts';
import { issuedFault } from './issued-fault.ts';
import { createNodeWatch, type NodeLog } from './node-watch.ts';
import type { Receiver } from './nodes/receiver.ts';
import { createRecentHashes } from './recent-hashes.ts';

interface IssuerOptions {
  readonly receiver: Receiver;
  readonly network: LightningNetwork;
  /** The key that the node must have, 66 hex characters; null takes the one it tells first. */
  readonly expectedKey: string | null;
  readonly expirySeconds: number;
  /** For one question to the node. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: NodeLog;
}

interface Order {
  readonly amountMsat: bigint;
  readonly binding: Binding;
}

/** An invoice that may be offered, as text and as it decodes. */
interface Issued {
  readonly text: string;
  readonly invoice: Invoice;
}

/** Sells through one node: every invoice that leaves here was checked, and a node that is away or wrong is left alone for a while. */
export interface Issuer {
  /** The key that invoices are signed with, 66 hex characters; null while it is unknown. */
  payTo(): string | null;
  /** Throws Unavailable, `lightning_unavailable`, when `issue` would without asking the node. */
  checkAvailable(): void;
  /** A fresh invoice for exactly this amount and request; throws Unavailable with when to try again. */
  issue(order: Order, signal: AbortSignal): Promise<Issued>;
  /** Whether the node has the payment; throws Unavailable when it cannot be asked. */
  isPaid(paymentHash: Uint8Array, signal: AbortSignal): Promise<boolean>;
  status(): { ok: boolean; detail?: string };
  /** Rejects with TooMuchPower, and then the service must not run; a node that is away is looked for in the background. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** More than the default limits let be made in the lifetime of an invoice. */
const REMEMBERED = 20_000;

function notTold(): Unavailable {
  const detail = 'The Lightning node cannot be asked whether this was paid; present the same payment again.';
  return new Unavailable('lightning_unavailable', detail);
}

function lostConnection(error: unknown): boolean {
  return error instanceof UpstreamFailed && error.cause instanceof ExchangeFailed && error.cause.connectionLost;
}

/**
 * A lost connection is no outage yet: a node closes connections that lie idle, and one may end as it is used again. So the order is made
 * once more. An invoice that the node made for the first one costs nothing, since nobody has seen it; the fresh label keeps the two apart.
 */
async function orderInvoice(
  { receiver, expirySeconds }: IssuerOptions,
  { amountMsat, binding }: Order,
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

/** The node's answers are untrusted: it may be broken, or not ours. What breaks the scheme's checks is never offered and counts as an outage. */
export function createIssuer(options: IssuerOptions): Issuer {
  const { receiver, network, expirySeconds, timeoutMs, clock, log } = options;
  const watch = createNodeWatch(options);
  const hashes = createRecentHashes(REMEMBERED);

  function faultOf(invoice: Invoice | null, amountMsat: bigint, binding: Binding): string | null {
    if (!invoice) return 'it cannot be decoded';
    const payTo = watch.key() ?? '';
    const ordered = { currency: network.currency, amountMsat, requestHash: binding.hash, expirySeconds, payTo };
    const fault = issuedFault(invoice, ordered, nowSeconds(clock));
    return fault ?? (hashes.add(invoice.paymentHash) ? null : 'its payment hash was used before');
  }

  /** The caller's own leaving, a full queue of ours and a bug of ours say nothing about the node. */
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
      const text = await ask(signal, (within) => orderInvoice(options, { amountMsat, binding }, within), watch.failed);
      const invoice = decodeInvoice(text);
      const fault = faultOf(invoice, amountMsat, binding);
      if (fault !== null || !invoice) {
        log.error({ receiver: receiver.kind, fault }, 'the Lightning node made an invoice that must not be offered');
        throw watch.failed(new Error(`it made an invoice that must not be offered: ${fault}`));
      }
      // Another question may have shown meanwhile that it must not be sold through at all.
      if (!watch.isOurs()) throw watch.unavailable();
      watch.succeeded();
      return { text, invoice };
    },
    async isPaid(paymentHash, signal) {
      if (!watch.isOurs()) throw watch.unavailable();
      return ask(signal, (within) => receiver.isPaid(paymentHash, within), notTold);
    },
    status: watch.status,
    start: watch.start,
    stop: async () => {
      await watch.stop();
      await receiver.close();
    },
  };
}
