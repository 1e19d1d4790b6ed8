import * as ldk from 'lightningdevkit';
import type { LightningNode } from './node.ts';

/** A connection between two nodes of one process. */
export interface Wire {
  /** Delivers the bytes that were sent since the last call. True when there were any. */
  deliver(): boolean;
  /** The two ends. LDK holds them weakly, so the owner of the connection must keep them. */
  readonly kept: readonly object[];
}

/** Connects `from` to `to` without a socket. Bytes are queued and delivered by `deliver`, so that no node is called during its own call. */
export function connectNodes(from: LightningNode, to: LightningNode): Wire {
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
