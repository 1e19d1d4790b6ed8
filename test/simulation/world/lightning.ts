import { createHash } from 'node:crypto';
import secp256k1 from 'secp256k1';
import { invoiceOf } from '../../../scripts/lib/lightning/encode-invoice.ts';
import type { Random } from '../engine/random.ts';
import type { Scheduler } from '../engine/scheduler.ts';
import type { Host, WireAnswer, WireFault, WireRequest } from '../network/wire.ts';

const ORIGIN = 'http://node.test';
/** Hex of no macaroon that could be read: the service then asks what it allows. */
export const MACAROON = '0abadcafe0ddba11deadc0de5ec4e7';

/** An invoice of the seller's node, and whether somebody has paid it. */
export interface NodeInvoice {
  readonly text: string;
  readonly paymentHash: string;
  readonly preimage: string;
  readonly amountMsat: bigint;
  readonly descriptionHash: string;
  readonly createdAt: number;
  /** Made for the service, or for another tenant of the node. */
  readonly ours: boolean;
  paid: boolean;
}

export interface NodeMood {
  fault: WireFault | null;
  faultPercent: number;
  /** Wrong invoices: of another amount, for another request, or one that was given before. */
  makes: 'right ones' | 'another amount' | 'another request' | 'the last one again';
}

interface LightningOptions {
  readonly scheduler: Scheduler;
  readonly random: Random;
}

/** The seller's LND node over its REST interface. Its invoices are real and signed; a payment shows the payer the preimage. */
export function createLightningNode({ scheduler, random }: LightningOptions) {
  const privateKey = random.bytes(32);
  const key = Buffer.from(secp256k1.publicKeyCreate(privateKey)).toString('hex');
  const invoices: NodeInvoice[] = [];
  const mood: NodeMood = { fault: null, faultPercent: 100, makes: 'right ones' };

  const json = (body: object, status = 200): WireAnswer => ({
    status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

  function make(amountMsat: bigint, descriptionHash: Buffer, expirySeconds: number, ours: boolean): NodeInvoice {
    const preimage = random.bytes(32);
    const paymentHash = createHash('sha256').update(preimage).digest();
    const createdAt = Math.floor(scheduler.nowMs() / 1000);
    const terms = { privateKey, amountMsat, createdAt, expirySeconds, paymentHash, descriptionHash };
    const invoice = {
      text: invoiceOf(terms),
      paymentHash: paymentHash.toString('hex'),
      preimage: preimage.toString('hex'),
      amountMsat,
      descriptionHash: descriptionHash.toString('hex'),
      createdAt,
      ours,
      paid: false,
    };
    invoices.push(invoice);
    return invoice;
  }

  function create(body: string): WireAnswer {
    const asked = JSON.parse(body) as { value_msat: string; description_hash: string; expiry: string };
    const hash = Buffer.from(asked.description_hash, 'base64');
    // A node repeats what it gave to us before. Even a faulty one keeps the invoices of its tenants apart.
    const last = invoices.findLast(({ ours }) => ours);
    const made =
      mood.makes === 'the last one again' && last
        ? last
        : make(
            BigInt(asked.value_msat) * (mood.makes === 'another amount' ? 2n : 1n),
            mood.makes === 'another request' ? createHash('sha256').update(hash).digest() : hash,
            Number(asked.expiry),
            true,
          );
    return json({
      r_hash: Buffer.from(made.paymentHash, 'hex').toString('base64'),
      payment_request: made.text,
      add_index: '1',
    });
  }

  function serve({ method, path, headers, body }: WireRequest): WireAnswer {
    if (headers['grpc-metadata-macaroon'] !== MACAROON) return json({ code: 2, message: 'permission denied' }, 500);
    if (path === '/v1/getinfo') return json({ identity_pubkey: key, alias: 'simulated', synced_to_chain: true });
    if (method === 'POST' && path === '/v1/invoices') return create(body);
    if (path === '/v1/macaroon/checkpermissions') return json({ code: 2, message: 'permission denied' }, 400);
    const wanted = /^\/v1\/invoice\/([0-9a-f]{64})$/.exec(path)?.[1];
    const found = invoices.find(({ paymentHash }) => paymentHash === wanted);
    return found
      ? json({ state: found.paid ? 'SETTLED' : 'OPEN' })
      : json({ code: 5, message: 'unable to locate invoice' }, 404);
  }

  const host: Host = {
    serve: (request, answer) => answer(serve(request)),
    fault: () => (mood.fault && random.chance(mood.faultPercent / 100) ? mood.fault : null),
    latencyMs: [2, 15],
  };
  return {
    origin: ORIGIN,
    host,
    mood,
    key,
    invoices: (): readonly NodeInvoice[] => invoices,
    /** Pays an invoice; the payer then has the preimage. A node takes no payment after the expiry. */
    pay(paymentHash: string): string | null {
      const found = invoices.find((one) => one.paymentHash === paymentHash);
      if (!found || scheduler.nowMs() / 1000 > found.createdAt + 300) return null;
      found.paid = true;
      return found.preimage;
    },
    /** The preimage of an invoice, for who can read the node's books. */
    peek: (paymentHash: string): string | null =>
      invoices.find((one) => one.paymentHash === paymentHash)?.preimage ?? null,
    /** An invoice that another tenant of a shared node makes for himself, and knows the preimage of. */
    makeForTenant: (amountMsat: bigint, descriptionHash: string): NodeInvoice =>
      make(amountMsat, Buffer.from(descriptionHash, 'hex'), 300, false),
    heal: () => void Object.assign(mood, { fault: null, faultPercent: 100, makes: 'right ones' }),
  };
}

export type LightningNode = ReturnType<typeof createLightningNode>;
