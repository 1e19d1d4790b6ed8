import { MAINNET } from '../../../../src/payment/lightning/terms.ts';
import { type Check, faultsAt, GONE, OTHER_HASH, OTHER_PAY_TO, PAY_TO, REQUEST_HASH } from './proof-cases.ts';

const TOOLS = 'https://api.example.com/mcp';

/** The checks of steps 1 to 3, in the scheme's order. */
export const TERMS_CHECKS: readonly Check[] = [
  {
    step: 1,
    reason: 'unsupported_scheme',
    faults: [
      ...faultsAt('payment.accepted', [GONE, null, undefined, 'exact', 5, true, []]),
      ...faultsAt('accepted.scheme', ['other', GONE, null, ['exact']]),
    ],
  },
  {
    step: 1,
    reason: 'network_mismatch',
    faults: faultsAt('accepted.network', ['lnbtc:other', 'LNBTC:000000000019D6689C085AE165831E93', GONE, null]),
  },
  {
    step: 1,
    reason: 'invalid_exact_lnbtc_amount_mismatch',
    faults: faultsAt('accepted.amount', [25000, '25001', '025000', '25000.0', '', GONE, null, ['25000']]),
  },
  { step: 1, reason: 'invalid_exact_lnbtc_asset', faults: faultsAt('accepted.asset', ['btc', 'BTC ', GONE, null]) },
  {
    step: 1,
    reason: 'invalid_exact_lnbtc_pay_to_mismatch',
    faults: faultsAt('accepted.payTo', [OTHER_PAY_TO, PAY_TO.toUpperCase(), `0x${PAY_TO}`, GONE, null]),
  },
  {
    step: 1,
    reason: 'invalid_exact_lnbtc_max_timeout_mismatch',
    faults: faultsAt('accepted.maxTimeoutSeconds', ['300', 301, 300.5, GONE, null]),
  },

  { step: 2, reason: 'unsupported_scheme', faults: faultsAt('both.scheme', ['upto', 'Exact', '', GONE, null]) },
  {
    step: 2,
    reason: 'unsupported_network',
    faults: faultsAt('both.network', [
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
  { step: 2, reason: 'invalid_exact_lnbtc_asset', faults: faultsAt('both.asset', ['bitcoin', 'SAT', '', GONE, null]) },
  {
    step: 2,
    reason: 'invalid_exact_lnbtc_amount',
    faults: faultsAt('both.amount', [
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
    faults: faultsAt('both.maxTimeoutSeconds', [
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
    faults: faultsAt('both.payTo', [
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
    faults: faultsAt('requirement.extra.assetTransferMethod', [null, '', 'bolt12', 'BOLT11', 0, false, ['bolt11']]),
  },
  {
    step: 3,
    reason: 'invalid_exact_lnbtc_asset_transfer_method',
    faults: faultsAt('accepted.extra.assetTransferMethod', [null, '', 'bolt12', 'BOLT11', 0, false, ['bolt11']]),
  },
  {
    step: 3,
    reason: 'invalid_exact_lnbtc_payment_flow',
    faults: [
      ...faultsAt('requirement.extra.paymentFlow', [GONE, null, '', 'deferred', 'Upfront', ['upfront']]),
      ...faultsAt('requirement.extra', [GONE, null, 'extra', []]),
    ],
  },
  {
    step: 3,
    reason: 'invalid_exact_lnbtc_payment_flow',
    faults: [
      ...faultsAt('accepted.extra.paymentFlow', [GONE, null, '', 'deferred', 'Upfront', ['upfront']]),
      ...faultsAt('accepted.extra', [GONE, null, 'extra', []]),
    ],
  },
  ...(['requirement', 'accepted'] as const).map((side) => ({
    step: 3,
    reason: 'invalid_exact_lnbtc_request_binding' as const,
    faults: [
      ...faultsAt(`${side}.extra.requestHash`, [
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
      ...faultsAt(`${side}.extra.requestBindingProfile`, [
        GONE,
        null,
        '',
        'http:2',
        'HTTP:1',
        ['http:1'],
        'constructor',
      ]),
      ...faultsAt(`${side}.extra.requestBindingParams`, [
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
      ...[
        { server: TOOLS, metadata: ['progressToken'] },
        { server: TOOLS, metadata: [''] },
        { server: TOOLS.replace('//', '//user@'), metadata: [] },
      ].map((params) => ({
        [`${side}.extra.requestBindingProfile`]: 'mcp:1',
        [`${side}.extra.requestBindingParams`]: params,
      })),
      // Another profile is unknown even with the parameters of one that is not.
      {
        [`${side}.extra.requestBindingProfile`]: 'mcp:2',
        [`${side}.extra.requestBindingParams`]: { server: TOOLS, metadata: [] },
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
      ...faultsAt('accepted.extra.declared', [
        GONE,
        null,
        {},
        'a',
        { name: 'a', list: [1, { deep: 0 }] },
        { name: 'a', list: [{ deep: null }, 1] },
        { name: 'a', list: [1, { deep: null }], more: 1 },
      ]),
      // What is not JSON is not the same, not even on both sides.
      ...faultsAt('both.extra.declared', [Number.NaN, [undefined]]),
      ...faultsAt('requirement.extra.another', [null, 0, '', 'text', [], {}]),
      ...faultsAt('requirement.extra.constructor', ['text', null]),
      ...faultsAt('requirement.extra.__proto__', [{ a: 1 }, null, {}]),
      ...faultsAt('requirement.extra.toString', [{}]),
    ],
  },
];
