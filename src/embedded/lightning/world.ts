import { setImmediate as turn } from 'node:timers/promises';
import * as ldk from 'lightningdevkit';
import { type Chain, createChain } from './chain.ts';
import { openChannel } from './channel.ts';
import { loadLdk } from './ldk.ts';
import { createNode, type LightningNode } from './node.ts';
import { connectNodes } from './wire.ts';

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
