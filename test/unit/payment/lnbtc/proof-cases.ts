import { bytesField, encodeInvoice, integerField } from '../../../../scripts/lib/lightning/encode-invoice.ts';
import {
  checkProof,
  type LnbtcReason,
  type ProofOptions,
  type ProofVerdict,
} from '../../../../src/payment/lightning/proof.ts';
import { MAINNET } from '../../../../src/payment/lightning/terms.ts';

/** The scheme's vector; its time of validation is the invoice's creation. */
export const NOW = 1_700_000_000;
export const REQUEST_HASH = '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018';
export const OTHER_HASH = '4a99860f75eed1ea8178a5db488e044173bc570c8a6210f2c8590cdf8622d509';
export const INVOICE =
  'lnbc250n1pj48ugqpp54y3u9s8ylemsv8l3ewyzzu0klhujvuvmkl6llchq23vy8rzjsf0qsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygshp5p4nz8am4uqj4q8a87z3sk4x6yk4dv2mvel34epw68qqkwy0xcqvqxqzfvcqpjr4rx6ls6j5rpwknuea64evlk7yfx56wmqcer5eerekdsn9tlv6v4ex9mlz5dtm9qapl3svwlqcf7837dmjkru9z9w4h2rvm0md52w2sqxrwu5f';
export const PREIMAGE = '0001020304050607080900010203040506070809000102030405060708090102';
export const PAYMENT_HASH = 'a923c2c0e4fe77061ff1cb882171f6fdf926719bb7f5ffe2e05458438c52825e';
export const PAY_TO = '0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798';
/** Of the private keys 2 and 3. */
export const OTHER_PAY_TO = '02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5';
export const THIRD_PAY_TO = '02f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9';

type Json = Record<string, unknown>;

/** A presentation before it is put together; whatever stands at `FRESH` becomes the invoice that `invoice` describes. */
export interface Presentation {
  payment: Json;
  requirement: Json;
  invoice: {
    key: number;
    currency: string;
    amountMsat: bigint;
    createdAt: number;
    expirySeconds: number;
    hashes: readonly string[];
    description: string | null;
    namesPayee: boolean;
  };
  now: number;
}

export const FRESH = '<the invoice>';
/** Takes the member away. */
export const GONE = Symbol('gone');

/** Settings by path; `both.` is the requirement's and the accepted side's at once, `accepted.` the accepted side's. */
export type Settings = Readonly<Record<string, unknown>>;

function goodPresentation(): Presentation {
  const terms = () => ({
    scheme: 'exact',
    network: MAINNET.id,
    asset: 'BTC',
    amount: '25000',
    payTo: PAY_TO,
    maxTimeoutSeconds: 300,
    extra: {
      assetTransferMethod: 'bolt11',
      paymentFlow: 'upfront',
      invoice: FRESH,
      requestHash: REQUEST_HASH,
      requestBindingProfile: 'http:1',
      requestBindingParams: { headers: [] },
      declared: { name: 'a', list: [1, { deep: null }] },
    },
  });
  return {
    payment: { x402Version: 2, accepted: terms(), payload: { preimage: PREIMAGE } },
    requirement: terms(),
    invoice: {
      key: 1,
      currency: 'bc',
      amountMsat: 25_000n,
      createdAt: NOW,
      expirySeconds: 300,
      hashes: [REQUEST_HASH],
      description: null,
      namesPayee: false,
    },
    now: NOW,
  };
}

/** A private key that is a small number. */
export function keyOf(value: number): Uint8Array {
  const key = Buffer.alloc(32);
  key[31] = value;
  return key;
}

const texts = new Map<string, string>();

/** The invoice's text; most presentations share one, and signing is the slow part. */
function invoiceText({ invoice }: Presentation): string {
  const key = JSON.stringify({ ...invoice, amountMsat: String(invoice.amountMsat) });
  const text = texts.get(key) ?? writeInvoice(invoice);
  texts.set(key, text);
  return text;
}

function writeInvoice(invoice: Presentation['invoice']): string {
  const fields = [bytesField('p', Buffer.from(PAYMENT_HASH, 'hex')), bytesField('s', Buffer.alloc(32, 0x11))];
  for (const hash of invoice.hashes) fields.push(bytesField('h', Buffer.from(hash, 'hex')));
  if (invoice.description !== null) fields.push(bytesField('d', Buffer.from(invoice.description)));
  fields.push(integerField('x', invoice.expirySeconds), integerField('c', 18));
  if (invoice.namesPayee) fields.push(bytesField('n', Buffer.from(PAY_TO, 'hex')));
  return encodeInvoice({ ...invoice, fields }, keyOf(invoice.key));
}

const ROOTS: Record<string, readonly string[]> = {
  both: ['requirement', 'payment.accepted'],
  accepted: ['payment.accepted'],
};

/** Sets what stands at a path, as the settings do. */
export function put(built: Presentation, path: string, value: unknown): void {
  const [root = '', ...rest] = path.split('.');
  for (const place of ROOTS[root] ?? [root]) {
    const names = [...place.split('.'), ...rest];
    const last = names.pop() as string;
    let target = built as unknown as Json;
    for (const name of names) target = target[name] as Json;
    if (value === GONE) delete target[last];
    else Object.defineProperty(target, last, { value, enumerable: true, writable: true, configurable: true });
  }
}

/** A good presentation with these settings made in turn, put together. */
export function presentation(...settings: readonly Settings[]): Presentation {
  const built = goodPresentation();
  for (const [path, value] of settings.flatMap((each) => Object.entries(each)))
    put(built, path, value === GONE ? GONE : structuredClone(value));
  const text = invoiceText(built);
  for (const side of [built.requirement, built.payment.accepted as Json | null | undefined]) {
    const extra = side?.extra as Json | null | undefined;
    if (extra?.invoice === FRESH) extra.invoice = text;
  }
  return built;
}

export function judge(built: Presentation, options: Partial<ProofOptions> = {}): ProofVerdict {
  return checkProof(built.payment, built.requirement, { now: built.now, ...options });
}

/** The reason for a good presentation with these settings, or `ok`. */
export function outcome(settings: Settings = {}, options: Partial<ProofOptions> = {}): LnbtcReason | 'ok' {
  const verdict = judge(presentation(settings), options);
  return verdict.ok ? 'ok' : verdict.reason;
}

/** The presentation of the scheme's vector, as its text gives it. */
export function vectorPresentation(): Presentation {
  return presentation({ 'both.extra.invoice': INVOICE });
}

/** One check, and the faults that it alone finds in an otherwise good presentation. */
export interface Check {
  readonly step: number;
  readonly reason: LnbtcReason;
  readonly faults: readonly Settings[];
}

/** One fault for each value that a path shall have. */
export function faultsAt(path: string, values: readonly unknown[]): Settings[] {
  return values.map((value) => ({ [path]: value }));
}
