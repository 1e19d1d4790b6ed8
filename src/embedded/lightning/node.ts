import * as ldk from 'lightningdevkit';
import type { Chain } from './chain.ts';
import { assembleNode, type NodeParts } from './node-parts.ts';

/** How a payment ended. */
export type Outcome =
  | { readonly ok: true; readonly preimage: Uint8Array }
  | { readonly ok: false; readonly reason: string };

/** A payment that a node has received. */
export interface Received {
  readonly amountMsat: bigint;
  /** 32 bytes; null where LDK does not tell it. */
  readonly preimage: Uint8Array | null;
}

/** A Lightning node of LDK. `createWorld` runs its events. */
export interface LightningNode {
  /** Compressed public key. */
  readonly id: Uint8Array;
  readonly parts: NodeParts;
  /** Received payments by payment hash in hex. */
  readonly received: ReadonlyMap<string, Received>;
  /** Handles LDK's pending events. True when there were any. */
  handleEvents(): boolean;
  /** The request to fund an opening channel, returned once. */
  takeFundingRequest(): ldk.Event_FundingGenerationReady | null;
  /** Why a channel of this node was closed; null while none was. */
  closedBecause(): string | null;
  createInvoice(order: { amountMsat: bigint; descriptionHash: Uint8Array; expirySeconds: number }): string;
  /** Starts a payment and returns a function for its outcome, which is null until there is one. Throws a readable error when it cannot be sent. */
  send(invoice: ldk.Bolt11Invoice): () => Outcome | null;
}

/** The most received payments that are remembered. */
const REMEMBERED = 10_000;

/** Creates a node on a chain. It does nothing until its events are handled. */
export function createNode(chain: Chain, network: ldk.Network): LightningNode {
  const queue: ldk.Event[] = [];
  const parts = assembleNode(chain, network, (event) => queue.push(event));
  const { manager } = parts;
  const received = new Map<string, Received>();
  const outcomes = new Map<string, (outcome: Outcome) => void>();
  let fundingRequest: ldk.Event_FundingGenerationReady | null = null;
  let closed: string | null = null;

  const settle = (id: Uint8Array, outcome: Outcome): void => {
    outcomes.get(hex(id))?.(outcome);
    outcomes.delete(hex(id));
  };

  const onEvent = (event: ldk.Event): void => {
    if (event instanceof ldk.Event_PendingHTLCsForwardable) manager.process_pending_htlc_forwards();
    else if (event instanceof ldk.Event_PaymentClaimable) {
      const preimage = event.purpose.preimage();
      if (preimage instanceof ldk.Option_ThirtyTwoBytesZ_Some) manager.claim_funds(preimage.some);
    } else if (event instanceof ldk.Event_PaymentClaimed) remember(received, event);
    else if (event instanceof ldk.Event_PaymentSent) {
      settle(event.payment_hash, { ok: true, preimage: Uint8Array.from(event.payment_preimage) });
    } else if (event instanceof ldk.Event_PaymentFailed) {
      settle(event.payment_id, { ok: false, reason: failureOf(event) });
    } else if (event instanceof ldk.Event_FundingGenerationReady) fundingRequest = event;
    else if (event instanceof ldk.Event_ChannelClosed) closed = event.reason.constructor.name;
  };

  return {
    id: Uint8Array.from(manager.get_our_node_id()),
    parts,
    received,
    handleEvents() {
      for (const source of parts.eventSources) source.process_pending_events(parts.eventHandler);
      const moved = queue.length > 0;
      for (let event = queue.shift(); event; event = queue.shift()) onEvent(event);
      return moved;
    },
    takeFundingRequest() {
      const request = fundingRequest;
      fundingRequest = null;
      return request;
    },
    closedBecause: () => closed,
    createInvoice: (order) => makeInvoice(manager, order),
    send(invoice) {
      const { hash, onion, route } = parametersOf(invoice);
      let outcome: Outcome | null = null;
      outcomes.set(hex(hash), (settled) => {
        outcome = settled;
      });
      const sent = manager.send_payment(hash, onion, hash, route, ldk.Retry.constructor_attempts(0));
      if (sent instanceof ldk.Result_NoneRetryableSendFailureZ_Err) {
        outcomes.delete(hex(hash));
        throw new Error(words(ldk.RetryableSendFailure[sent.err]));
      }
      return () => outcome;
    },
  };
}

function remember(received: Map<string, Received>, event: ldk.Event_PaymentClaimed): void {
  const known = event.purpose.preimage();
  const preimage = known instanceof ldk.Option_ThirtyTwoBytesZ_Some ? Uint8Array.from(known.some) : null;
  received.set(hex(event.payment_hash), { amountMsat: event.amount_msat, preimage });
  const [oldest] = received.keys();
  if (received.size > REMEMBERED && oldest !== undefined) received.delete(oldest);
}

type InvoiceOrder = Parameters<LightningNode['createInvoice']>[0];

function makeInvoice(
  manager: ldk.ChannelManager,
  { amountMsat, descriptionHash, expirySeconds }: InvoiceOrder,
): string {
  const made = ldk.UtilMethods.constructor_create_invoice_from_channelmanager_with_description_hash(
    manager,
    ldk.Option_u64Z.constructor_some(amountMsat),
    ldk.Sha256.constructor_from_bytes(descriptionHash),
    expirySeconds,
    ldk.Option_u16Z.constructor_none(),
  );
  if (made instanceof ldk.Result_Bolt11InvoiceSignOrCreationErrorZ_OK) return made.res.to_str();
  throw new Error('the node made no invoice');
}

/** The parameters of a payment of the invoice. Throws when the invoice has no amount. */
function parametersOf(invoice: ldk.Bolt11Invoice) {
  const read = ldk.UtilMethods.constructor_payment_parameters_from_invoice(invoice);
  if (!(read instanceof ldk.Result_C3Tuple_ThirtyTwoBytesRecipientOnionFieldsRouteParametersZNoneZ_OK)) {
    throw new Error('the invoice names no amount');
  }
  return { hash: read.res.get_a(), onion: read.res.get_b(), route: read.res.get_c() };
}

function failureOf({ reason }: ldk.Event_PaymentFailed): string {
  const known = reason instanceof ldk.Option_PaymentFailureReasonZ_Some ? reason.some : undefined;
  return known === undefined ? 'unknown' : words(ldk.PaymentFailureReason[known]);
}

/** LDK's names of constants in readable form: `LDKPaymentFailureReason_RouteNotFound` is "route not found". */
function words(name = 'unknown'): string {
  const [last = name] = name.split('_').slice(-1);
  return last.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
