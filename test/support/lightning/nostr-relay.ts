import type { AddressInfo } from 'node:net';
import { NWCClient, NWCWalletService, NWCWalletServiceKeyPair } from '@getalby/sdk/nwc';
import { type WebSocket, WebSocketServer } from 'ws';
import { invoiceOf } from '../../../scripts/lib/lightning/encode-invoice.ts';
import { nodeKeys } from './lightning-node-servers.ts';

type NostrEvent = Awaited<ReturnType<NWCClient['signEvent']>>;
type Filter = Record<string, unknown> & { kinds?: number[]; authors?: string[] };

/** A relay on loopback. It keeps replaceable events, forwards the others, and checks nothing, as relays may. */
export interface NostrRelay {
  readonly url: string;
  /** Everything that was published, in order. */
  readonly events: NostrEvent[];
  /** Whether it refuses every event. */
  refuse: boolean;
  /** Sends an event to its subscribers, as a wallet would publish it. */
  spread(event: NostrEvent): void;
  /** Called with every request of a client. */
  wallet: (request: NostrEvent) => void;
  connections(): number;
  /** The subscriptions that clients have requested, in order, and the number of open ones. */
  readonly asked: Filter[];
  open(): number;
  stop(): Promise<void>;
}

export async function startNostrRelay(): Promise<NostrRelay> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await new Promise((listening) => server.once('listening', listening));
  const subscriptions = new Map<WebSocket, Map<string, Filter>>();
  const relay: NostrRelay = {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    events: [],
    asked: [],
    open: () => [...subscriptions.values()].reduce((sum, { size }) => sum + size, 0),
    refuse: false,
    wallet: () => undefined,
    spread(event) {
      relay.events.push(event);
      for (const [socket, filters] of subscriptions) {
        for (const [id, filter] of filters) if (fits(filter, event)) socket.send(JSON.stringify(['EVENT', id, event]));
      }
    },
    connections: () => server.clients.size,
    stop: () =>
      new Promise((resolve) => {
        for (const client of server.clients) client.terminate();
        server.close(() => resolve());
      }),
  };
  server.on('connection', (socket) => {
    const filters = new Map<string, Filter>();
    subscriptions.set(socket, filters);
    socket.on('close', () => subscriptions.delete(socket));
    socket.on('message', (data) => {
      const [type, first, filter] = JSON.parse(String(data));
      if (type === 'CLOSE') filters.delete(first);
      if (type === 'REQ') {
        filters.set(first, filter);
        relay.asked.push(filter);
        for (const event of relay.events.filter(({ kind }) => kind === 13_194)) {
          if (fits(filter, event)) socket.send(JSON.stringify(['EVENT', first, event]));
        }
        socket.send(JSON.stringify(['EOSE', first]));
      }
      if (type === 'EVENT') {
        socket.send(JSON.stringify(['OK', first.id, !relay.refuse, relay.refuse ? 'blocked: not now' : '']));
        if (!relay.refuse) {
          relay.spread(first);
          relay.wallet(first);
        }
      }
    });
  });
  return relay;
}

function fits(filter: Filter, event: NostrEvent): boolean {
  const tagged = Object.entries(filter).filter(([name]) => name.startsWith('#'));
  return (
    (filter.kinds?.includes(event.kind) ?? true) &&
    (filter.authors?.includes(event.pubkey) ?? true) &&
    tagged.every(([name, values]) =>
      event.tags.some(([tag, value]) => `#${tag}` === name && (values as string[]).includes(value ?? '')),
    )
  );
}

/** A wallet behind a relay, and the connection string of its one client. */
export interface NostrWallet {
  readonly connection: string;
  readonly secret: string;
  /** Its own key on the relay. */
  readonly pubkey: string;
  /** The key of its Lightning node. */
  readonly key: string;
  /** The parameters of each make_invoice. */
  readonly orders: Order[];
  /** The payment hash of each lookup_invoice. */
  readonly lookups: string[];
  methods: string[];
  /** The error code of its refusals. */
  code: string;
  /** How it answers its next requests. */
  mood: 'well' | 'silent' | 'refusing' | 'garbled' | 'odd';
  /** The result of a lookup; null means not found. */
  lookup: Record<string, unknown> | null;
}

interface Order {
  readonly amount: number;
  readonly description_hash: string;
  readonly expiry: number;
}

const CLIENT_SECRET = '7e'.repeat(32);

/**
 * Starts a wallet behind the relay with the given encryptions. It uses the library's keys and encryption and makes real invoices. With null its info
 * has no tag of encryptions; with '' the tag has no value.
 */
export async function startNostrWallet(
  relay: NostrRelay,
  encryptions: string | null = 'nip44_v2 nip04',
): Promise<NostrWallet> {
  const { privateKey, key } = nodeKeys('nwc stand-in');
  const walletSecret = nodeKeys('nwc wallet').privateKey.toString('hex');
  const client = new NWCClient({ relayUrls: [relay.url], walletPubkey: '11'.repeat(32), secret: CLIENT_SECRET });
  const pair = new NWCWalletServiceKeyPair(walletSecret, client.publicKey);
  const service = new NWCWalletService({ relayUrls: [relay.url] });
  const publish = async (kind: number, content: string, tags: string[][]) =>
    relay.spread(await service.signEvent({ kind, created_at: now(), tags, content }, walletSecret));
  const wallet: NostrWallet = {
    connection: `nostr+walletconnect://${pair.walletPubkey}?relay=${encodeURIComponent(relay.url)}&secret=${CLIENT_SECRET}`,
    secret: CLIENT_SECRET,
    pubkey: pair.walletPubkey,
    key,
    orders: [],
    lookups: [],
    code: 'RESTRICTED',
    methods: ['get_info', 'make_invoice', 'lookup_invoice'],
    mood: 'well',
    lookup: null,
  };

  function answer(method: string, params: unknown): object {
    if (method === 'lookup_invoice') wallet.lookups.push((params as { payment_hash: string }).payment_hash);
    // The wallet chooses the text of a refusal. This one repeats a secret that the service must not repeat.
    if (wallet.mood === 'refusing') return { error: { code: wallet.code, message: CLIENT_SECRET }, result: null };
    if (wallet.mood === 'odd') return { result_type: method, result: { surprise: CLIENT_SECRET } };
    if (method === 'get_info')
      return { result_type: method, error: null, result: { pubkey: key, methods: wallet.methods } };
    if (method === 'lookup_invoice') {
      return wallet.lookup ? { result: wallet.lookup } : { error: { code: 'NOT_FOUND', message: 'no such invoice' } };
    }
    const order = params as Order;
    wallet.orders.push(order);
    const invoice = invoiceOf({
      privateKey,
      createdAt: now(),
      amountMsat: BigInt(order.amount),
      descriptionHash: Buffer.from(order.description_hash, 'hex'),
      expirySeconds: order.expiry,
      paymentHash: nodeKeys(`hash ${wallet.orders.length}`).privateKey,
    });
    return { result_type: method, result: { type: 'incoming', invoice } };
  }

  async function serve(request: NostrEvent): Promise<void> {
    if (wallet.mood === 'silent') return;
    const encryption = request.tags.find(([tag]) => tag === 'encryption')?.[1] === 'nip44_v2' ? 'nip44_v2' : 'nip04';
    const { method, params } = JSON.parse(await service.decrypt(pair, request.content, encryption));
    const said = JSON.stringify(answer(method, params));
    const content = wallet.mood === 'garbled' ? 'not for anybody' : await service.encrypt(pair, said, encryption);
    await publish(23_195, content, [
      ['e', request.id],
      ['p', client.publicKey],
    ]);
  }
  relay.wallet = (request) => void serve(request);
  await publish(13_194, 'get_info make_invoice', [
    ['notifications', 'payment_received'],
    ...(encryptions === null ? [] : [['encryption', encryptions].slice(0, encryptions === '' ? 1 : 2)]),
  ]);
  return wallet;
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
