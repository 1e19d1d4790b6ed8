import { randomBytes } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { p2wpkh, Transaction } from '@scure/btc-signer';
import type { Chain } from './chain.ts';
import type { LightningNode } from './node.ts';

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
export async function openChannel({ chain, from, to, capacitySat, pushMsat, until }: Opening): Promise<void> {
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
