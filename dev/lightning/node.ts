import { randomBytes } from 'node:crypto';
import * as ldk from 'lightningdevkit';
import type { Chain } from './chain.ts';

/** How a payment ended. */
type Outcome = { readonly ok: true; readonly preimage: Uint8Array } | { readonly ok: false; readonly reason: string };

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

/** The parts of an LDK node. */
interface NodeParts {
  readonly manager: ldk.ChannelManager;
  readonly peers: ldk.PeerManager;
  /** The sources of events, and the handler that queues them. */
  readonly eventSources: readonly ldk.EventsProvider[];
  readonly eventHandler: ldk.EventHandler;
  /** The objects that LDK calls. LDK holds them weakly, so the node's owner must keep them. */
  readonly kept: readonly object[];
}

/** Fee rate in sat per 1,000 weight: the minimum, because no transactions compete for blocks. */
const FEE_PER_1000_WEIGHT = 253;
/** BOLT2's own limit; LDK's default of 50 is too low for parallel payments. */
const MAX_HTLCS = 483;
/** Payments under about 2,310 sat count as dust, and by default only about three of them may be in flight at once. */
const DUST_LIMIT_MSAT = 10n ** 12n;
/** 21 million bitcoin; LDK's default is 0.16. */
const MAX_FUNDING_SAT = 2_100_000_000_000_000n;

/** Creates an LDK node with a fresh key, in memory only. LDK passes events to `onEvent` one by one, which may only queue them. */
function assembleNode(chain: Chain, network: ldk.Network, onEvent: (event: ldk.Event) => void): NodeParts {
  const callbacks = createCallbacks(chain, onEvent);
  const { fees, broadcaster, persist, eventHandler } = callbacks;
  const { graph, logger } = sharedGraph();
  const noFilter = ldk.Option_FilterZ.constructor_none();
  const monitor = ldk.ChainMonitor.constructor_new(noFilter, broadcaster, logger, fees, persist);
  const keys = ldk.KeysManager.constructor_new(randomBytes(32), BigInt(chain.time()), 0);
  const routing = assembleRouting(graph, logger, keys);
  const manager = ldk.ChannelManager.constructor_new(
    fees,
    monitor.as_Watch(),
    broadcaster,
    routing.router.as_Router(),
    routing.messages.as_MessageRouter(),
    logger,
    keys.as_EntropySource(),
    keys.as_NodeSigner(),
    keys.as_SignerProvider(),
    userConfig(),
    ldk.ChainParameters.constructor_new(network, ldk.BestBlock.constructor_new(chain.tip(), chain.height())),
    chain.time(),
  );
  const ignorer = ldk.IgnoringMessageHandler.constructor_new();
  const peers = ldk.PeerManager.constructor_new(
    manager.as_ChannelMessageHandler(),
    ignorer.as_RoutingMessageHandler(),
    ignorer.as_OnionMessageHandler(),
    ignorer.as_CustomMessageHandler(),
    chain.time(),
    randomBytes(32),
    logger,
    keys.as_NodeSigner(),
  );
  const confirms = [manager.as_Confirm(), monitor.as_Confirm()];
  chain.follow(confirms);
  const kept = [callbacks, monitor, keys, routing, ignorer, confirms];
  const eventSources = [manager.as_EventsProvider(), monitor.as_EventsProvider()];
  return { manager, peers, eventSources, eventHandler, kept };
}

/** The callbacks that LDK needs. They write nothing, and return the minimum fee. */
function createCallbacks(chain: Chain, onEvent: (event: ldk.Event) => void) {
  const done = ldk.ChannelMonitorUpdateStatus.LDKChannelMonitorUpdateStatus_Completed;
  return {
    fees: ldk.FeeEstimator.new_impl({ get_est_sat_per_1000_weight: () => FEE_PER_1000_WEIGHT }),
    broadcaster: ldk.BroadcasterInterface.new_impl({
      broadcast_transactions: (raws) => {
        for (const raw of raws) chain.broadcast(raw);
      },
    }),
    persist: ldk.Persist.new_impl({
      persist_new_channel: () => done,
      update_persisted_channel: () => done,
      archive_persisted_channel: () => {},
    }),
    eventHandler: ldk.EventHandler.new_impl({
      handle_event: (event) => {
        onEvent(event);
        return ldk.Result_NoneReplayEventZ.constructor_ok();
      },
    }),
  };
}

let shared: { readonly graph: ldk.NetworkGraph; readonly logger: ldk.Logger } | null = null;

/**
 * LDK's network graph, and a logger that writes nothing. The graph stays empty, because the nodes gossip nothing and know their own channel; so a graph of
 * mainnet serves every network. LDK keeps room for the whole public network in it: 146 MB of the 2 GiB that LDK's binding can address. So all nodes of
 * this process share one.
 */
function sharedGraph() {
  if (!shared) {
    const logger = ldk.Logger.new_impl({ log: () => {} });
    shared = { graph: ldk.NetworkGraph.constructor_new(ldk.Network.LDKNetwork_Bitcoin, logger), logger };
    // The graph has taken what was free.
    reserveMemory();
  }
  return shared;
}

/** A dozen pairs of nodes and their payments take less. */
const RESERVED_BYTES = 16 * 1024 * 1024;

/**
 * Lets LDK allocate memory and free it, so that later nodes find free memory. Otherwise its WebAssembly memory grows by 64 KB at a time. V8 counts each growth
 * as an allocation of the whole memory, and so collects all garbage, two or three times for a pair of nodes. LDK has no call for this. `constructor_read`
 * copies its input into LDK's memory. That the zeros are no ChannelConfig does not matter.
 */
function reserveMemory(): void {
  ldk.ChannelConfig.constructor_read(new Uint8Array(RESERVED_BYTES));
}

/** Routing to the payee. Two connected nodes have one route. */
function assembleRouting(graph: ldk.NetworkGraph, logger: ldk.Logger, keys: ldk.KeysManager) {
  const decay = ldk.ProbabilisticScoringDecayParameters.constructor_default();
  const scorer = ldk.ProbabilisticScorer.constructor_new(decay, graph, logger);
  const score = ldk.MultiThreadedLockableScore.constructor_new(scorer.as_Score());
  const router = ldk.DefaultRouter.constructor_new(
    graph,
    logger,
    keys.as_EntropySource(),
    score.as_LockableScore(),
    ldk.ProbabilisticScoringFeeParameters.constructor_default(),
  );
  const messages = ldk.DefaultMessageRouter.constructor_new(graph, keys.as_EntropySource());
  return { graph, scorer, score, router, messages };
}

/** LDK's getters return copies, so each part is set back. */
function userConfig(): ldk.UserConfig {
  const config = ldk.UserConfig.constructor_default();
  const handshake = config.get_channel_handshake_config();
  handshake.set_max_inbound_htlc_value_in_flight_percent_of_channel(100);
  handshake.set_minimum_depth(1);
  handshake.set_our_max_accepted_htlcs(MAX_HTLCS);
  config.set_channel_handshake_config(handshake);
  const channel = config.get_channel_config();
  channel.set_max_dust_htlc_exposure(ldk.MaxDustHTLCExposure.constructor_fixed_limit_msat(DUST_LIMIT_MSAT));
  config.set_channel_config(channel);
  const limits = config.get_channel_handshake_limits();
  limits.set_max_funding_satoshis(MAX_FUNDING_SAT);
  config.set_channel_handshake_limits(limits);
  return config;
}
