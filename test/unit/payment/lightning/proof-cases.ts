import { bytesField, encodeInvoice, integerField } from '../../../../scripts/lib/encode-invoice.ts';
import { MAINNET, TESTNET } from '../../../../src/payment/lightning/networks.ts';
import { checkProof, type ProofOptions, type ProofVerdict } from '../../../../src/payment/lightning/proof.ts';
import type { LnbtcReason } from '../../../../src/payment/lightning/proof-reasons.ts';

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
const OTHER_PAY_TO = '02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5';
const THIRD_PAY_TO = '02f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9';

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

/** One check, and the faults that it alone finds in an otherwise good presentation. */
export interface Check {
  readonly step: number;
  readonly reason: LnbtcReason;
  readonly faults: readonly Settings[];
}

const AS = (path: string, values: readonly unknown[]): Settings[] => values.map((value) => ({ [path]: value }));
const TOOLS = 'https://api.example.com/mcp';

/** Every check of steps 1 to 7, in the scheme's order. */
export const CHECKS: readonly Check[] = [
  {
    step: 1,
    reason: 'unsupported_scheme',
    faults: [
      ...AS('payment.accepted', [GONE, null, undefined, 'exact', 5, true, []]),
      ...AS('accepted.scheme', ['other', GONE, null, ['exact']]),
    ],
  },
  {
    step: 1,
    reason: 'network_mismatch',
    faults: AS('accepted.network', ['lnbtc:other', 'LNBTC:000000000019D6689C085AE165831E93', GONE, null]),
  },
  {
    step: 1,
    reason: 'invalid_exact_lnbtc_amount_mismatch',
    faults: AS('accepted.amount', [25000, '25001', '025000', '25000.0', '', GONE, null, ['25000']]),
  },
  { step: 1, reason: 'invalid_exact_lnbtc_asset', faults: AS('accepted.asset', ['btc', 'BTC ', GONE, null]) },
  {
    step: 1,
    reason: 'invalid_exact_lnbtc_pay_to_mismatch',
    faults: AS('accepted.payTo', [OTHER_PAY_TO, PAY_TO.toUpperCase(), `0x${PAY_TO}`, GONE, null]),
  },
  {
    step: 1,
    reason: 'invalid_exact_lnbtc_max_timeout_mismatch',
    faults: AS('accepted.maxTimeoutSeconds', ['300', 301, 300.5, GONE, null]),
  },

  { step: 2, reason: 'unsupported_scheme', faults: AS('both.scheme', ['upto', 'Exact', '', GONE, null]) },
  {
    step: 2,
    reason: 'unsupported_network',
    faults: AS('both.network', [
      'eip155:1',
      'lnbtc:',
      'constructor',
      '__proto__',
      'toString',
      'hasOwnProperty',
      MAINNET.id.toUpperCase(),
      `${MAINNET.id} `,
      GONE,
      null,
      0,
    ]),
  },
  { step: 2, reason: 'invalid_exact_lnbtc_asset', faults: AS('both.asset', ['bitcoin', 'SAT', '', GONE, null]) },
  {
    step: 2,
    reason: 'invalid_exact_lnbtc_amount',
    faults: AS('both.amount', [
      '0',
      '00',
      '0025',
      '-1',
      '+1',
      '1.0',
      '1e3',
      '0x1',
      '1_000',
      ' 1',
      '1 ',
      '1\n',
      '\u0661',
      'many',
      250,
      GONE,
      null,
      true,
    ]),
  },
  {
    step: 2,
    reason: 'invalid_exact_lnbtc_max_timeout',
    faults: AS('both.maxTimeoutSeconds', [
      0,
      -0,
      -300,
      299.5,
      2 ** 53,
      Number.POSITIVE_INFINITY,
      '299',
      GONE,
      null,
      true,
    ]),
  },
  {
    step: 2,
    reason: 'invalid_exact_lnbtc_pay_to_malformed',
    faults: AS('both.payTo', [
      OTHER_PAY_TO.toUpperCase(),
      PAY_TO.slice(2),
      `${PAY_TO}00`,
      `0x${PAY_TO.slice(2)}`,
      `${PAY_TO}\n`,
      `04${PAY_TO.slice(2)}`,
      `00${PAY_TO.slice(2)}`,
      `02${'00'.repeat(31)}05`,
      `02${'ff'.repeat(32)}`,
      '',
      GONE,
      null,
      5,
    ]),
  },

  {
    step: 3,
    reason: 'invalid_exact_lnbtc_asset_transfer_method',
    faults: AS('requirement.extra.assetTransferMethod', [null, '', 'bolt12', 'BOLT11', 0, false, ['bolt11']]),
  },
  {
    step: 3,
    reason: 'invalid_exact_lnbtc_asset_transfer_method',
    faults: AS('accepted.extra.assetTransferMethod', [null, '', 'bolt12', 'BOLT11', 0, false, ['bolt11']]),
  },
  {
    step: 3,
    reason: 'invalid_exact_lnbtc_payment_flow',
    faults: [
      ...AS('requirement.extra.paymentFlow', [GONE, null, '', 'deferred', 'Upfront', ['upfront']]),
      ...AS('requirement.extra', [GONE, null, 'extra', []]),
    ],
  },
  {
    step: 3,
    reason: 'invalid_exact_lnbtc_payment_flow',
    faults: [
      ...AS('accepted.extra.paymentFlow', [GONE, null, '', 'deferred', 'Upfront', ['upfront']]),
      ...AS('accepted.extra', [GONE, null, 'extra', []]),
    ],
  },
  ...(['requirement', 'accepted'] as const).map((side) => ({
    step: 3,
    reason: 'invalid_exact_lnbtc_request_binding' as const,
    faults: [
      ...AS(`${side}.extra.requestHash`, [
        GONE,
        null,
        '',
        REQUEST_HASH.toUpperCase(),
        REQUEST_HASH.slice(1),
        `${REQUEST_HASH}\n`,
        `0x${REQUEST_HASH}`,
        [REQUEST_HASH],
        5,
      ]),
      ...AS(`${side}.extra.requestBindingProfile`, [GONE, null, '', 'http:2', 'HTTP:1', ['http:1'], 'constructor']),
      ...AS(`${side}.extra.requestBindingParams`, [
        GONE,
        null,
        [],
        '',
        {},
        { headers: null },
        { headers: ['B', 'a'] },
        { headers: [], more: 1 },
        { headers: ['payment-signature'] },
      ]),
      { [`${side}.extra.requestBindingProfile`]: 'mcp:1' },
      {
        [`${side}.extra.requestBindingProfile`]: 'mcp:1',
        [`${side}.extra.requestBindingParams`]: { server: TOOLS, metadata: ['progressToken'] },
      },
    ],
  })),
  {
    step: 3,
    reason: 'invalid_exact_lnbtc_request_mismatch',
    faults: [
      { 'accepted.extra.requestHash': OTHER_HASH },
      { 'requirement.extra.requestHash': OTHER_HASH },
      {
        'accepted.extra.requestBindingProfile': 'mcp:1',
        'accepted.extra.requestBindingParams': { server: TOOLS, metadata: [] },
      },
      { 'accepted.extra.requestBindingParams': { headers: ['accept'] } },
      { 'requirement.extra.requestBindingParams': { headers: ['accept'] } },
    ],
  },
  {
    step: 3,
    reason: 'invalid_exact_lnbtc_extra_mismatch',
    faults: [
      ...AS('accepted.extra.declared', [
        GONE,
        null,
        {},
        'a',
        { name: 'a', list: [1, { deep: 0 }] },
        { name: 'a', list: [{ deep: null }, 1] },
        { name: 'a', list: [1, { deep: null }], more: 1 },
      ]),
      ...AS('requirement.extra.another', [null, 0, '', 'text', [], {}]),
      ...AS('requirement.extra.constructor', ['text', null]),
      ...AS('requirement.extra.__proto__', [{ a: 1 }, null, {}]),
      ...AS('requirement.extra.toString', [{}]),
    ],
  },

  {
    step: 4,
    reason: 'invalid_exact_lnbtc_invoice_missing',
    faults: AS('requirement.extra.invoice', [GONE, undefined, null, '']),
  },
  {
    step: 4,
    reason: 'invalid_exact_lnbtc_invoice_missing',
    faults: AS('accepted.extra.invoice', [GONE, undefined, null, '']),
  },

  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_decode_failed',
    faults: AS('accepted.extra.invoice', [
      5,
      0,
      true,
      false,
      {},
      [INVOICE],
      ' ',
      'lnbc',
      `lightning:${INVOICE}`,
      ` ${INVOICE}`,
      INVOICE.slice(0, -1),
      `${INVOICE}q`,
      `LNBC${INVOICE.slice(4)}`,
      INVOICE.replace('lnbc', 'lnxx'),
    ]),
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_description',
    faults: [
      { 'invoice.hashes': [] },
      { 'invoice.hashes': [], 'invoice.description': 'a page' },
      { 'invoice.description': 'a page' },
      { 'invoice.description': '' },
      { 'invoice.hashes': [REQUEST_HASH, REQUEST_HASH] },
      { 'invoice.hashes': [REQUEST_HASH, OTHER_HASH] },
    ],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_request_mismatch',
    faults: [{ 'invoice.hashes': [OTHER_HASH] }, { 'both.extra.requestHash': PAYMENT_HASH }],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_payee_mismatch',
    faults: [{ 'invoice.key': 2 }, { 'both.payTo': THIRD_PAY_TO }, { 'both.payTo': PAY_TO.replace(/^02/, '03') }],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_currency_mismatch',
    faults: [
      ...AS('invoice.currency', ['tb', 'bcrt', 'tbs']),
      { 'both.network': TESTNET.id },
      ...['bcrt', 'tbs'].map((currency) => ({ 'both.network': TESTNET.id, 'invoice.currency': currency })),
    ],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_amount_mismatch',
    faults: [
      ...AS('invoice.amountMsat', [24_999n, 25_001n, 25_000_000n]),
      ...AS('both.amount', ['25', '9'.repeat(10_000)]),
    ],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_expiry_mismatch',
    faults: [
      ...AS('invoice.expirySeconds', [299, 301, 3600]),
      ...AS('both.maxTimeoutSeconds', [299, Number.MAX_SAFE_INTEGER]),
    ],
  },
  {
    step: 5,
    reason: 'invalid_exact_lnbtc_invoice_created_in_future',
    faults: AS('invoice.createdAt', [NOW + 61, 2 ** 35 - 1]),
  },

  {
    step: 6,
    reason: 'invalid_exact_lnbtc_preimage_missing',
    faults: [
      ...AS('payment.payload', [GONE, null, {}, [], 'text', PREIMAGE]),
      ...AS('payment.payload.preimage', [GONE, undefined, null]),
    ],
  },
  {
    step: 6,
    reason: 'invalid_exact_lnbtc_preimage_malformed',
    faults: AS('payment.payload.preimage', [
      0,
      false,
      {},
      [PREIMAGE],
      `0x${PREIMAGE.slice(2)}`,
      `${PREIMAGE.slice(1)}A`,
      `${PREIMAGE}\n`,
      ` ${PREIMAGE}`,
      'g',
      'é',
    ]),
  },
  {
    step: 6,
    reason: 'invalid_exact_lnbtc_preimage_length',
    faults: AS('payment.payload.preimage', ['', '0', PREIMAGE.slice(2), PREIMAGE.slice(1), `${PREIMAGE}00`]),
  },
  {
    step: 6,
    reason: 'invalid_exact_lnbtc_preimage_hash_mismatch',
    faults: AS('payment.payload.preimage', ['00'.repeat(32), PAYMENT_HASH, `${PREIMAGE.slice(2)}00`]),
  },

  { step: 7, reason: 'invalid_exact_lnbtc_invoice_expired', faults: AS('invoice.createdAt', [NOW - 361, 0]) },
];

/** The presentation of the scheme's vector, as its text gives it. */
export function vectorPresentation(): Presentation {
  return presentation({ 'both.extra.invoice': INVOICE });
}
