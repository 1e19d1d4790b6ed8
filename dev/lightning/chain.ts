import { createHash, randomBytes } from 'node:crypto';
import { Transaction } from '@scure/btc-signer';
import * as ldk from 'lightningdevkit';

/** A simulated chain of block headers for Lightning nodes. */
export interface Chain {
  /** The hash of the newest header. */
  tip(): Uint8Array;
  height(): number;
  /** Unix seconds of the newest header, which the nodes use as the present time. */
  time(): number;
  /** Reports every later block to a node. */
  follow(confirms: readonly ldk.Confirm[]): void;
  /** Takes a transaction that a node wants mined. */
  broadcast(raw: Uint8Array): void;
  /** Mines one block: with the given transaction, or with none. */
  mine(raw?: Uint8Array): void;
  /** Mines all broadcast transactions and returns their number. */
  mineBroadcast(): number;
  /**
   * Moves the time forward without a new block, so that payments in flight do not reach their time-out height: the tip is reported again with a later
   * time. Never moves the time back.
   */
  advanceTo(seconds: number): void;
}

const HEADER_BYTES = 80;

/**
 * Starts a chain at a network's genesis block. Headers link to each other and commit to their transactions.
 * There is no proof of work, because LDK does not check it. LDK's WASM has no other
 * clock than the time of the newest header.
 */
export function createChain(genesis: Uint8Array, startTime: number): Chain {
  const followers: ldk.Confirm[] = [];
  const waiting = new Map<string, Uint8Array>();
  let [parent, tip, height, time] = [genesis, genesis, 0, startTime];

  const announce = (header: Uint8Array, raw?: Uint8Array): void => {
    for (const follower of followers) {
      if (raw) {
        const placed = ldk.TwoTuple_usizeTransactionZ.constructor_new(0, raw);
        follower.transactions_confirmed(header, [placed], height);
      }
      follower.best_block_updated(header, height);
    }
  };

  const mine = (raw?: Uint8Array): void => {
    time += 1;
    // With a single transaction its id is the Merkle root.
    const header = headerOf(tip, raw ? txidOf(raw) : randomBytes(32), time);
    [parent, tip, height] = [tip, doubleSha256(header), height + 1];
    announce(header, raw);
  };

  return {
    tip: () => tip,
    height: () => height,
    time: () => time,
    follow: (confirms) => void followers.push(...confirms),
    broadcast: (raw) => void waiting.set(txidOf(raw).toString('hex'), raw),
    mine,
    mineBroadcast() {
      const transactions = [...waiting.values()];
      waiting.clear();
      for (const raw of transactions) mine(raw);
      return transactions.length;
    },
    advanceTo(seconds) {
      if (seconds <= time) return;
      time = seconds;
      const header = headerOf(parent, randomBytes(32), time);
      tip = doubleSha256(header);
      announce(header);
    },
  };
}

function headerOf(previous: Uint8Array, merkleRoot: Uint8Array, time: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeInt32LE(0x20000000, 0);
  header.set(previous, 4);
  header.set(merkleRoot, 36);
  header.writeUInt32LE(time, 68);
  header.writeUInt32LE(0x207fffff, 72);
  header.set(randomBytes(4), 76);
  return header;
}

/** A transaction's id in the byte order of the wire. */
function txidOf(raw: Uint8Array): Buffer {
  const lenient = { allowUnknownOutputs: true, allowUnknownInputs: true, disableScriptCheck: true };
  return Buffer.from(Transaction.fromRaw(raw, lenient).id, 'hex').reverse();
}

function doubleSha256(bytes: Uint8Array): Buffer {
  const once = createHash('sha256').update(bytes).digest();
  return createHash('sha256').update(once).digest();
}
