import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { p2wpkh, Transaction } from '@scure/btc-signer';
import * as ldk from 'lightningdevkit';
import { type Chain, createChain } from './chain.ts';
import { createNode, type LightningNode } from './node.ts';

/** Two Lightning nodes on a chain of their own, with a channel between them. */
export interface World {
  readonly chain: Chain;
  readonly payer: LightningNode;
  readonly receiver: LightningNode;
  /** A fresh BOLT11 invoice of the receiver's, created at the chain's time. */
  createInvoice(order: { amountMsat: bigint; descriptionHash: Uint8Array; expirySeconds: number }): string;
  /** Pays through the channel and resolves with the preimage. Rejects with a readable error. Payments run one after another. */
  pay(bolt11: string): Promise<Uint8Array>;
}

const CAPACITY_SAT = 1_000_000_000n;
const PUSHED_MSAT = 100_000_000_000n;
/** Time-out of a step. Everything is in memory, so a step that takes longer never ends. */
const STEP_TIMEOUT_MS = 10_000;
/** Payments between two ticks of LDK's timer, at which it deletes finished payments. */
const PAYMENTS_PER_TICK = 50;

const NETWORKS = { mainnet: 'LDKNetwork_Bitcoin', testnet: 'LDKNetwork_Testnet' } as const;

/** Starts both nodes and returns when the channel (10 BTC, 1 of it the receiver's) can be used. Several pairs may exist at once. */
export async function createWorld(name: 'mainnet' | 'testnet', startTime: number): Promise<World> {
  await loadLdk();
  const network = ldk.Network[NETWORKS[name]];
  const genesis = ldk.BestBlock.constructor_from_network(network).get_block_hash();
  const chain = createChain(genesis, startTime);
  const [payer, receiver] = [createNode(chain, network), createNode(chain, network)];
  const nodes = [payer, receiver];
  const wire = connectNodes(payer, receiver);

  /** Delivers bytes and handles events until there are none. It is synchronous, so that no code sees the nodes in between. */
  const pump = (): void => {
    for (let moved = true; moved; ) {
      for (const { parts } of nodes) parts.peers.process_events();
      moved = wire.deliver();
      for (const node of nodes) moved = node.handleEvents() || moved;
    }
  };

  const until = async (what: string, holds: () => boolean): Promise<void> => {
    for (const start = performance.now(); ; ) {
      pump();
      if (holds()) return;
      const closed = nodes.map((node) => node.closedBecause()).find((reason) => reason !== null);
      if (closed) throw new Error(`the channel was closed: ${closed}`);
      if (performance.now() - start > STEP_TIMEOUT_MS) throw new Error(`the Lightning nodes did not come to ${what}`);
      await turn();
    }
  };

  await openChannel({ chain, from: payer, to: receiver, capacitySat: CAPACITY_SAT, pushMsat: PUSHED_MSAT, until });

  let payments = 0;
  const payNow = async (bolt11: string): Promise<Uint8Array> => {
    const outcomeOf = payer.send(readInvoice(bolt11, chain.time()));
    try {
      await until('an outcome', () => outcomeOf() !== null);
    } finally {
      payments += 1;
      if (payments % PAYMENTS_PER_TICK === 0) for (const { parts } of nodes) parts.manager.timer_tick_occurred();
      // Finalisers free LDK's handles and run only between event loop turns. Without this pause memory would grow.
      await turn();
    }
    const outcome = outcomeOf();
    if (!outcome?.ok) throw new Error(`the payment failed: ${outcome?.reason}`);
    return outcome.preimage;
  };

  let last: Promise<unknown> = Promise.resolve();
  return {
    chain,
    payer,
    receiver,
    createInvoice: receiver.createInvoice,
    pay(bolt11) {
      const paid = last.then(() => payNow(bolt11));
      last = paid.catch(() => {});
      return paid;
    },
  };
}

/** Throws for an expired invoice, which LDK would pay and a wallet would not. */
function readInvoice(bolt11: string, now: number): ldk.Bolt11Invoice {
  const read = ldk.Bolt11Invoice.constructor_from_str(bolt11);
  if (!(read instanceof ldk.Result_Bolt11InvoiceParseOrSemanticErrorZ_OK)) throw new Error('not a BOLT11 invoice');
  if (read.res.would_expire(BigInt(now))) throw new Error('the invoice has expired');
  return read.res;
}

interface Opening {
  readonly chain: Chain;
  readonly from: LightningNode;
  readonly to: LightningNode;
  readonly capacitySat: bigint;
  /** The amount that the other side gets at once, so that it could pay too. */
  readonly pushMsat: bigint;
  /** Runs the nodes until the condition holds. */
  readonly until: (what: string, holds: () => boolean) => Promise<void>;
}

/** The fee of the funding transaction. */
const FEE_SAT = 1000n;

/** Opens a channel, funded by a fresh coinbase, and resolves when both sides can use it. */
async function openChannel({ chain, from, to, capacitySat, pushMsat, until }: Opening): Promise<void> {
  await until('a connection', () => [from, to].every(({ parts }) => parts.peers.list_peers().length > 0));
  const created = from.parts.manager.create_channel(to.id, capacitySat, pushMsat, 1n, null as never, null as never);
  if (!created.is_ok()) throw new Error('the channel was refused');
  let request = from.takeFundingRequest();
  await until('a request for funding', () => {
    request ??= from.takeFundingRequest();
    return request !== null;
  });
  if (!request) throw new Error('no funding was asked for');
  const funding = fundingTransaction(chain, request.output_script, request.channel_value_satoshis);
  const { temporary_channel_id: channel, counterparty_node_id: peer } = request;
  const taken = from.parts.manager.funding_transaction_generated(channel, peer, funding);
  if (!taken.is_ok()) throw new Error('the funding transaction was refused');
  // It is broadcast only after the other side has signed the refund.
  await until('the funding transaction', () => chain.mineBroadcast() > 0);
  chain.mine();
  await until('a usable channel', () => usable(from, to) && usable(to, from));
}

/** A signed transaction that pays the channel out of a fresh coinbase, which is mined before. */
function fundingTransaction(chain: Chain, channelScript: Uint8Array, capacitySat: bigint): Uint8Array {
  const key = randomBytes(32);
  const { script } = p2wpkh(secp256k1.getPublicKey(key, true));
  const coin = { script, amount: capacitySat + FEE_SAT };
  const coinbase = new Transaction({ allowUnknownInputs: true, allowUnknownOutputs: true, disableScriptCheck: true });
  coinbase.addOutput(coin);
  coinbase.addInput({
    txid: new Uint8Array(32),
    index: 0xffffffff,
    finalScriptSig: Uint8Array.from([2, chain.height() & 0xff, 0x51]),
    sequence: 0xffffffff,
  });
  chain.mine(coinbase.toBytes(true, true));
  const funding = new Transaction({ allowUnknownOutputs: true });
  funding.addInput({ txid: coinbase.id, index: 0, witnessUtxo: coin });
  funding.addOutput({ script: channelScript, amount: capacitySat });
  funding.sign(key);
  funding.finalize();
  return funding.extract();
}

function usable(node: LightningNode, peer: LightningNode): boolean {
  return node.parts.manager.list_channels_with_counterparty(peer.id).some((channel) => channel.get_is_usable());
}

/** A connection between two nodes of one process. */
interface Wire {
  /** Delivers the bytes that were sent since the last call. True when there were any. */
  deliver(): boolean;
  /** The two ends. LDK holds them weakly, so the owner of the connection must keep them. */
  readonly kept: readonly object[];
}

/** Connects `from` to `to` without a socket. Bytes are queued and delivered by `deliver`, so that no node is called during its own call. */
function connectNodes(from: LightningNode, to: LightningNode): Wire {
  const queue: (() => void)[] = [];
  let connected = true;
  const cut = (): void => {
    connected = false;
  };
  const hand = (node: LightningNode, end: () => ldk.SocketDescriptor, bytes: Uint8Array): void => {
    queue.push(() => {
      if (connected && !node.parts.peers.read_event(end(), bytes).is_ok()) cut();
    });
  };
  const near: ldk.SocketDescriptor = createEnd(1n, (bytes) => hand(to, () => far, bytes), cut);
  const far: ldk.SocketDescriptor = createEnd(2n, (bytes) => hand(from, () => near, bytes), cut);

  const nowhere = ldk.Option_SocketAddressZ.constructor_none();
  to.parts.peers.new_inbound_connection(far, nowhere);
  const hello = from.parts.peers.new_outbound_connection(to.id, near, nowhere);
  if (!(hello instanceof ldk.Result_CVec_u8ZPeerHandleErrorZ_OK)) throw new Error('the nodes did not connect');
  hand(to, () => far, hello.res);

  return {
    deliver() {
      const moved = queue.length > 0;
      for (let next = queue.shift(); next; next = queue.shift()) next();
      return moved;
    },
    kept: [near, far],
  };
}

function createEnd(id: bigint, send: (bytes: Uint8Array) => void, close: () => void): ldk.SocketDescriptor {
  return ldk.SocketDescriptor.new_impl({
    send_data: (data) => {
      // A copy, because LDK reuses the memory of these bytes.
      send(Uint8Array.from(data));
      return data.length;
    },
    disconnect_socket: close,
    eq: (other) => other.hash() === id,
    hash: () => id,
  });
}

let loaded: Promise<void> | null = null;

/** Loads LDK. The process has one WASM instance, so it is loaded once. */
function loadLdk(): Promise<void> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<void> {
  const entry = createRequire(import.meta.url).resolve('lightningdevkit');
  const wasm = await readFile(join(dirname(entry), 'liblightningjs.wasm'));
  const { log } = console;
  // LDK prints a greeting on standard output, which the caller uses. The greeting is dropped; everything else is printed.
  console.log = (...args: unknown[]) => {
    if (!String(args[0]).startsWith('Loaded LDK')) log(...args);
  };
  try {
    await ldk.initializeWasmFromBinary(Uint8Array.from(wasm));
  } finally {
    console.log = log;
  }
}
