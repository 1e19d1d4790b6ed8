import { createHash, randomBytes } from 'node:crypto';
import secp256k1 from 'secp256k1';
import { type InvoiceTerms, invoiceOf } from '../../../scripts/lib/lightning/encode-invoice.ts';
import type { Config } from '../../../src/config.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import { type Received, type Recorded, type Replay, startReplay } from '../upstream/replay.ts';

export const NODE_KINDS = ['lnd', 'cln', 'phoenixd'] as const;
export type NodeKind = (typeof NODE_KINDS)[number];

/** A key pair of a node; the public half as 66 hex characters. */
export function nodeKeys(name: string) {
  const privateKey = createHash('sha256').update(name).digest();
  return { privateKey, key: Buffer.from(secp256k1.publicKeyCreate(privateKey)).toString('hex') };
}

/** The credentials of each stand-in. They share no text with anything else, so that a search finds a leak. */
export const SECRETS = {
  lnd: '0abadcafe0ddba11deadc0de5ec4e7',
  cln: 'cunningrune-5ecret_rUne0123456789=',
  phoenixd: 'whispered-5ecret-password',
};

/** A node over HTTP with the documented API of LND, clnrest or phoenixd. Its invoices are real and signed. It has no channels. */
export interface NodeServer {
  readonly kind: NodeKind;
  readonly url: string;
  readonly received: Replay['received'];
  readonly answers: Replay['answers'];
  readonly setFault: Replay['setFault'];
  readonly config: Exclude<NonNullable<Config['lightning']['receiver']>, { kind: 'nwc' }>;
  /** The members in which the next invoices differ from the order. */
  twist: Partial<InvoiceTerms>;
  /** The key that it reports. */
  key: string;
  /** The invoices made, newest last. */
  readonly invoices: { readonly text: string; readonly paymentHash: Buffer }[];
  /** Marks an invoice as paid. */
  pay(paymentHash: Uint8Array): void;
  stop(): Promise<void>;
}

interface Ordered {
  readonly amountMsat: bigint;
  readonly descriptionHash: Buffer;
  readonly expirySeconds: number;
}

interface Shape {
  /** What every request must carry. */
  readonly credentials: readonly [name: string, value: string];
  readonly denied: Recorded;
  readonly create: string;
  ordered(request: Received): Ordered;
  created(text: string, hash: Buffer): unknown;
  readonly info: string;
  reported(key: string): unknown;
  /** The method and path of a lookup, and the payment hash that it asks for. */
  readonly lookup: string;
  wanted(request: Received): string;
  found(paid: boolean | null): Recorded;
}

const json = (value: unknown, status = 200): Recorded => ({ status, body: JSON.stringify(value) });

const SHAPES: Record<NodeKind, Shape> = {
  lnd: {
    credentials: ['grpc-metadata-macaroon', SECRETS.lnd],
    denied: json({ code: 2, message: 'permission denied', details: [] }, 500),
    create: 'POST /v1/invoices',
    ordered: ({ body }) => {
      const { value_msat, description_hash, expiry } = JSON.parse(body);
      const descriptionHash = Buffer.from(description_hash, 'base64');
      return { amountMsat: BigInt(value_msat), descriptionHash, expirySeconds: Number(expiry) };
    },
    created: (payment_request, hash) => ({
      r_hash: hash.toString('base64'),
      payment_request,
      add_index: '1',
      payment_addr: Buffer.alloc(32, 0x11).toString('base64'),
    }),
    info: 'GET /v1/getinfo',
    reported: (identity_pubkey) => ({
      version: '0.19.0-beta',
      identity_pubkey,
      alias: 'stand-in',
      synced_to_chain: true,
    }),
    lookup: 'GET /v1/invoice/',
    wanted: ({ url }) => url.slice('/v1/invoice/'.length),
    found: (paid) =>
      paid === null
        ? json({ code: 5, message: 'unable to locate invoice', details: [] }, 404)
        : json({ state: paid ? 'SETTLED' : 'OPEN', settled: paid }),
  },
  cln: {
    credentials: ['rune', SECRETS.cln],
    denied: json({ code: 1501, message: 'Not authorized' }, 401),
    create: 'POST /v1/invoice',
    ordered: ({ body }) => {
      const { amount_msat, description, deschashonly, expiry } = JSON.parse(body);
      const amountMsat = BigInt(/^(\d+)msat$/.exec(amount_msat)?.[1] ?? -1);
      const descriptionHash = createHash('sha256').update(description).digest();
      return { amountMsat, descriptionHash: deschashonly ? descriptionHash : Buffer.alloc(0), expirySeconds: expiry };
    },
    created: (bolt11, hash) => ({
      payment_hash: hash.toString('hex'),
      expires_at: 1_700_000_300,
      bolt11,
      payment_secret: '11'.repeat(32),
      created_index: 1,
      warning_capacity: 'Insufficient incoming channel capacity to pay invoice',
    }),
    info: 'POST /v1/getinfo',
    reported: (id) => ({ id, alias: 'stand-in', num_peers: 0, network: 'bitcoin' }),
    lookup: 'POST /v1/listinvoices',
    wanted: ({ body }) => JSON.parse(body).payment_hash,
    found: (paid) => json({ invoices: paid === null ? [] : [{ label: 'x', status: paid ? 'paid' : 'unpaid' }] }),
  },
  phoenixd: {
    credentials: ['authorization', `Basic ${Buffer.from(`:${SECRETS.phoenixd}`).toString('base64')}`],
    denied: { status: 401, headers: { 'content-type': 'text/plain' }, body: 'Invalid authentication' },
    create: 'POST /createinvoice',
    ordered: ({ body }) => {
      const form = new URLSearchParams(body);
      return {
        amountMsat: BigInt(form.get('amountSat') ?? -1) * 1000n,
        descriptionHash: Buffer.from(form.get('descriptionHash') ?? '', 'hex'),
        expirySeconds: Number(form.get('expirySeconds')),
      };
    },
    created: (serialized, hash) => ({ amountSat: 25, paymentHash: hash.toString('hex'), serialized }),
    info: 'GET /getinfo',
    reported: (nodeId) => ({ nodeId, channels: [], chain: 'mainnet', version: '0.6.2' }),
    lookup: 'GET /payments/incoming/',
    wanted: ({ url }) => url.slice('/payments/incoming/'.length),
    found: (paid) => (paid === null ? { status: 404, body: 'not found' } : json({ isPaid: paid, receivedSat: 25 })),
  },
};

/** Starts a node of a kind. `tls` serves the certificate of the tests' own authority. */
export async function startNodeServer(
  kind: NodeKind,
  clock: Pick<Clock, 'nowMs'>,
  { tls = false, port = 0 } = {},
): Promise<NodeServer> {
  const shape = SHAPES[kind];
  const { privateKey, key } = nodeKeys(`${kind} stand-in`);
  const paid = new Set<string>();
  const answers: Replay['answers'] = {};
  const replay = await startReplay(answers, { tls, port });
  const server: NodeServer = {
    kind,
    url: replay.url,
    received: replay.received,
    answers,
    setFault: replay.setFault,
    config: configOf(kind, replay.url),
    twist: {},
    key,
    invoices: [],
    pay: (paymentHash) => void paid.add(Buffer.from(paymentHash).toString('hex')),
    stop: replay.stop,
  };
  const [name, value] = shape.credentials;
  const guarded = (answer: (request: Received) => Recorded) => (request: Received) =>
    request.headers[name] === value ? answer(request) : shape.denied;

  const createdAt = () => Math.floor(clock.nowMs() / 1000);
  answers[shape.create] = guarded((request) => {
    const paymentHash = createHash('sha256').update(randomBytes(32)).digest();
    const terms = { privateKey, paymentHash, createdAt: createdAt(), ...shape.ordered(request), ...server.twist };
    const text = invoiceOf(terms);
    server.invoices.push({ text, paymentHash: Buffer.from(terms.paymentHash) });
    return json(shape.created(text, paymentHash), kind === 'cln' ? 201 : 200);
  });
  answers[shape.info] = guarded(() => json(shape.reported(server.key), kind === 'cln' ? 201 : 200));
  const lookup = guarded((request) => {
    const wanted = shape.wanted(request);
    const known = server.invoices.some(({ paymentHash }) => paymentHash.toString('hex') === wanted);
    return shape.found(known ? paid.has(wanted) : null);
  });
  const [method, prefix = ''] = shape.lookup.split(' ');
  answers['*'] = (request) =>
    request.method === method && request.url.startsWith(prefix) ? lookup(request) : { status: 404, body: '{}' };
  return server;
}

function configOf(kind: NodeKind, url: string): NodeServer['config'] {
  const tlsCertFile = null;
  if (kind === 'lnd') return { kind, url, macaroon: SECRETS.lnd, tlsCertFile };
  return kind === 'cln' ? { kind, url, rune: SECRETS.cln, tlsCertFile } : { kind, url, password: SECRETS.phoenixd };
}
