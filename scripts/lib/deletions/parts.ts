import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A text that stands in a file exactly once, and what takes its place. Whole lines, or a part of one. */
export type Edit = readonly [file: string, text: string, instead: string];

export interface Part {
  readonly name: string;
  /** Files and folders of the part itself. */
  readonly files: readonly string[];
  /** What else names the part: the lines of composition and of settings. */
  readonly edits: readonly Edit[];
  /** Scripts, tests and their support that are about the part alone. */
  readonly tests: readonly string[];
  /** Tests and functions about the part in files that have others too, by a text in their first lines. */
  readonly testCases: readonly (readonly [file: string, title: string])[];
  /** Rows of tests that are about more than the part. */
  readonly testEdits: readonly Edit[];
}

const RAILS = 'src/wiring/rails.ts';
const SERVICE = 'src/wiring/service.ts';
const ROUTES = 'src/wiring/routes.ts';
const SURFACES = 'src/wiring/surfaces.ts';
const SETTINGS = 'src/config.ts';
const SELLERS = 'src/config/seller.ts';
const RAIL_SETTINGS = 'src/config/payment.ts';
const PORTS = 'src/store/ports/stores.ts';
const STORES = 'src/store/open.ts';

const METRICS = 'test/unit/payment/payment-metrics.test.ts';
const CATALOGUE = 'test/unit/wiring/open-catalogue.test.ts';
const BAZAAR = 'test/unit/payment/protocols/x402/bazaar.test.ts';
const SUITE = 'test/ports/rail/suite.ts';
const CONFIGURED = 'test/unit/payment/open-rails.test.ts';
const TERMS = 'test/support/service/terms.ts';
const USDC_WORLD = 'test/support/payment/usdc-world.ts';
const CHECKOUTS = 'test/support/payment/checkout-world.ts';
const WORDS = 'test/unit/payment/refusal-words.test.ts';
const PRICES = 'test/unit/payment/checkout/asks-the-price.test.ts';
const TODAY = 'test/unit/payment/settled-today.test.ts';

/** What stands in a file from one text up to another. Throws where it stands there no more. */
function cut(file: string, from: string, upTo: string): Edit {
  const source = readFileSync(join(import.meta.dirname, '../../..', file), 'utf8');
  const start = source.indexOf(from);
  const end = source.indexOf(upTo, start);
  if (start < 0 || end < 0) throw new Error(`${file} has no part from ${from} up to ${upTo}`);
  return [file, source.slice(start, end), ''];
}

const CHANNELS_ON =
  '  channels: { authorizerKey: `0x$' +
  "{'11'.repeat(32)}`, withdrawDelaySeconds: 604_800, minDeposit: 1_000_000n } as never,\n";
const CHANNELS: Part = {
  name: 'channels',
  files: ['src/payment/channels', 'src/store/channels.ts', 'src/store/ports/channels.ts'],
  edits: [
    [RAILS, "import { channelsInfo, openChannels } from '../payment/channels/rail.ts';\n", ''],
    [RAILS, '  { info: channelsInfo, open: openChannels },\n', ''],
    [SETTINGS, '  channels: payment.CHANNELS,\n', ''],
    [SETTINGS, 'gateway, channels, server', 'gateway, server'],
    [
      SETTINGS,
      "      channels: seller.channels ? { ...channels, authorizerKey: seller.authorizerKey ?? '0x' } : null,\n",
      '',
    ],
    cut(SELLERS, "  channels: key('CHANNELS'", '  receiver: key('),
    cut(RAIL_SETTINGS, '// Payment channels: ', '// Protocols, limits and replies'),
    [STORES, "import { createChannelStore } from './channels.ts';\n", ''],
    [STORES, '    channels: createChannelStore(ledger, waiting),\n', ''],
    [PORTS, "import type { ChannelStore } from './channels.ts';\n", ''],
    [PORTS, '  readonly channels: ChannelStore;\n', ''],
    [
      'scripts/ledger.ts',
      "    if (name === 'claim') return (await import('./lib/ledger/ledger-claim.ts')).claimChannels(service);\n",
      '',
    ],
  ],
  tests: [
    'scripts/lib/ledger/ledger-claim.ts',
    'test/support/chain/lying-channels.ts',
    'test/support/channels',
    'test/support/ledger/channel-model.ts',
    'test/support/ledger/channel-rows.ts',
    'test/support/ledger/use-channels.ts',
    'test/support/rails/usdc-channels.ts',
    'test/unit/payment/channels',
    'test/unit/payment/rails/usdc-channels',
  ],
  testCases: [
    [METRICS, 'function sell('],
    [METRICS, 'a deposit into a channel counts as settled with what it paid for, not with the rest'],
    [METRICS, 'a sale for a voucher is counted without a read of its row'],
    [METRICS, 'a sale for a contract that no rail has is counted as of another rail'],
    [
      'test/unit/payment/checkout/asks-again-after-a-refusal.test.ts',
      'corrects its entry of the refused scheme, and no other',
    ],
    [PRICES, 'have channels once their contract was found'],
    [CONFIGURED, 'recognise a payment by the entry of the 402 that it names'],
    [CONFIGURED, 'have no channels while those are off'],
    ['test/unit/payment/one-place.test.ts', 'one place refuses a payer with too many open payments'],
  ],
  testEdits: [
    [BAZAAR, CHANNELS_ON, ''],
    [CHECKOUTS, CHANNELS_ON, ''],
    [METRICS, "import { chargedSale } from '../../../src/payment/channels/voucher-sale.ts';\n", ''],
    [METRICS, "import type { VoucherSale } from '../../../src/store/ports/channels.ts';\n", ''],
    [
      METRICS,
      "import { channelState, channelTerms, depositSale, voucherSale } from '../../support/ledger/channel-rows.ts';\n",
      '',
    ],
    [SUITE, "import { usdcDeposit, usdcVoucher } from '../../support/rails/usdc-channels.ts';\n", ''],
    [SUITE, '    [usdcDeposit, []],\n', ''],
    [
      SUITE,
      "    [usdcVoucher, ['expired', 'spent meanwhile', 'unclear settlement', 'secret kept from answers']],\n",
      '',
    ],
    [SUITE, 'usdcGateway, usdcDeposit, usdcVoucher, lightning', 'usdcGateway, lightning'],
    [CONFIGURED, "import { openChannels } from '../../../src/payment/channels/rail.ts';\n", ''],
    [CONFIGURED, 'gateway: null, channels: null, exactFrom', 'gateway: null, exactFrom'],
    [TERMS, 'gateway: null, channels: null, exactFrom', 'gateway: null, exactFrom'],
    [USDC_WORLD, 'gateway: null, channels: null, exactFrom', 'gateway: null, exactFrom'],
    [
      WORDS,
      "import { reason } from '../../../src/payment/channels/scheme.ts';\n",
      'const reason = (name: string) => name;\n',
    ],
    ['test/http/server.test.ts', "['CHANELS', 'CHANNELS']", "['CHANELS', '']"],
    [WORDS, 'toBeGreaterThan(70)', 'toBeGreaterThan(50)'],
    [WORDS, "  'payment/channels/scheme.ts: why': 'named',\n", ''],
    [WORDS, "  'payment/channels/voucher-sale.ts: stale.code': 'named',\n", ''],
    [WORDS, "    expect(said).toContain(reason('cumulative_below_claimed'));\n", ''],
    [TODAY, '    await pay(700n, CHANNELS);\n', ''],
    [TODAY, '      channels: { count: 1, amount: 700n },\n', ''],
    [
      CATALOGUE,
      "const CHANNELS = { CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: ",
      "const CHANNELS = { GATEWAY: 'on', CHANNELS_AUTHORIZER_KEY: ",
    ],
  ],
};

const GATEWAY: Part = {
  name: 'gateway',
  files: ['src/payment/usdc/gateway.ts', 'src/payment/usdc/gateway-client.ts'],
  edits: [
    [RAILS, "import { gatewayInfo, openGatewayRail } from '../payment/usdc/gateway.ts';\n", ''],
    [RAILS, '  { info: gatewayInfo, open: openGatewayRail },\n', ''],
    cut(RAIL_SETTINGS, "// Circle's Gateway: ", '// Payment channels: '),
    [SETTINGS, '  gateway: payment.GATEWAY,\n', ''],
    [SETTINGS, 'settling, gateway, channels', 'settling, channels'],
    [SETTINGS, '      gateway: payment.gatewayOf(network, gateway),\n', ''],
    [
      'src/pages/page-parts.ts',
      'rails: { readonly gateway: unknown; readonly exactFrom',
      'rails: { readonly exactFrom',
    ],
    ['src/pages/reference.ts', '    readonly rails: { readonly gateway: unknown };\n', ''],
    ['src/pages/reference.ts', 'hasGateway: config.rails.gateway !== null', 'hasGateway: false'],
  ],
  tests: [
    'test/support/rails/usdc-gateway.ts',
    'test/support/usdc/gateway-network.ts',
    'test/support/usdc/gateway-payment.ts',
    'test/support/usdc/gateway-stand-in.ts',
    'test/unit/payment/rails/usdc-gateway',
    'test/unit/payment/usdc/gateway-deposits.test.ts',
    'test/unit/payment/usdc/gateway.test.ts',
  ],
  testCases: [
    [USDC_WORLD, 'export async function openGatewaySale('],
    [PRICES, 'have the Gateway’s contract second where that rail is on'],
    [PRICES, 'leave the plain entry out below the price from which it is sold'],
    [CONFIGURED, 'knows Circle’s services for Arc and its test network'],
    [CONFIGURED, 'may spend on gas what came in over the relayer today'],
    [CONFIGURED, 'are distinguished by the contract that the payer signed for'],
    [CONFIGURED, 'are well when /supported lists what we sell for'],
    [CONFIGURED, 'sell nothing over a facilitator while the token is paused'],
    [CONFIGURED, 'separate another ledger’s payments from their own only on the Gateway'],
    [CONFIGURED, 'end a Gateway payment that was used before it was handed over'],
    [CONFIGURED, 'make the service unready by the facilitator alone'],
    [CONFIGURED, 'recognise a payment by the entry of the 402 that it names'],
    [CONFIGURED, 'have neither the Gateway’s rail, nor its entry'],
  ],
  testEdits: [
    [SUITE, "import { usdcGateway } from '../../support/rails/usdc-gateway.ts';\n", ''],
    [SUITE, '    [usdcGateway, []],\n', ''],
    [SUITE, 'usdcFacilitator, usdcGateway, usdcDeposit', 'usdcFacilitator, usdcDeposit'],
    [TERMS, 'remote: null, gateway: null, channels', 'remote: null, channels'],
    [
      TERMS,
      "{ ...PLAIN_RAILS, gateway: { url: 'http://127.0.0.1:1', wallet, token: null, timeoutMs: 1000 } }",
      'PLAIN_RAILS',
    ],
    [USDC_WORLD, 'remote: null, gateway: null, channels', 'remote: null, channels'],
    [
      USDC_WORLD,
      "import { gatewayExtra, gatewayRequirement, openGatewayRail } from '../../../src/payment/usdc/gateway.ts';\n",
      '',
    ],
    [USDC_WORLD, "import { signForGateway } from '../usdc/gateway-payment.ts';\n", ''],
    [USDC_WORLD, "import { startGatewayStandIn } from '../usdc/gateway-stand-in.ts';\n", ''],
    [CONFIGURED, 'remote: null, gateway: null, channels', 'remote: null, channels'],
    [
      CONFIGURED,
      "import { gatewayExtra, gatewayInfo, openGatewayRail } from '../../../src/payment/usdc/gateway.ts';\n",
      '',
    ],
    [CONFIGURED, "import { signForGateway } from '../../support/usdc/gateway-payment.ts';\n", ''],
    [
      CONFIGURED,
      "import { type GatewayStandIn, startGatewayStandIn } from '../../support/usdc/gateway-stand-in.ts';\n",
      '',
    ],
    [CONFIGURED, "    [{ GATEWAY_TOKEN: 'a b' }, /^GATEWAY_TOKEN: a token without spaces/],\n", ''],
    [CONFIGURED, '  let gateway: GatewayStandIn;\n', ''],
    [CONFIGURED, '    gateway = await startGatewayStandIn(5042, WALLET);\n', ''],
    [CONFIGURED, '    await gateway.stop();\n', ''],
    [CONFIGURED, 'GATEWAY_URL: gateway.url', "GATEWAY_URL: ''"],
    [BAZAAR, 'expect(accepts).toHaveLength(2)', 'expect(accepts).toHaveLength(1)'],
    // A row without a reason still has it.
    [WORDS, '...LNBTC_REASONS]);', "...LNBTC_REASONS, 'unexpected_settle_error']);"],
    [WORDS, "  'payment/usdc/gateway.ts: reason': 'the Gateway’s own words',\n", ''],
    [TODAY, '    await pay(3000n, GATEWAY);\n', ''],
    [TODAY, '      gateway: { count: 1, amount: 3000n },\n', ''],
    [CATALOGUE, "    expect(problemsWith({ EXACT: 'off', GATEWAY: 'on' })).toEqual([]);\n", ''],
  ],
};

const MPP: Part = {
  name: 'mpp',
  files: ['src/payment/protocols/mpp'],
  edits: [
    [SURFACES, "import { createMppEvm, MPP_REFUSALS } from '../payment/protocols/mpp/evm.ts';\n", ''],
    [SURFACES, 'protocols.mpp ? createMppEvm(clock, secrets, realm) : null', 'null'],
    [SURFACES, 'LNBTC_REFUSALS, MPP_REFUSALS, ', 'LNBTC_REFUSALS, '],
    ['src/wiring/lightning.ts', "import { createMppLightning } from '../payment/protocols/mpp/lightning.ts';\n", ''],
    ['src/wiring/lightning.ts', ', createMppLightning(secrets, realm)]', ']'],
    cut(RAIL_SETTINGS, '  mpp: key(', '  secret: optional('),
    [SETTINGS, '    ...others,\n', '    ...others,\n    protocols: { ...others.protocols, mpp: false },\n'],
  ],
  tests: ['test/unit/payment/protocols/mpp'],
  testCases: [],
  testEdits: [
    [WORDS, "import { MPP_REFUSALS } from '../../../src/payment/protocols/mpp/evm.ts';\n", ''],
    [WORDS, 'LNBTC_REFUSALS, MPP_REFUSALS]', 'LNBTC_REFUSALS]'],
  ],
};

const NODE_SHOWN = `    expect(body).toMatch(
      /Lightning<\\/th><td class="good">no fault<\\/td>.*?<td class="loose" data-label="Detail">no node configured/,
    );
`;

/** The facilitator stays. So does what it needs of the folder: binding, invoices, terms and proofs. */
const LIGHTNING: Part = {
  name: 'lightning',
  files: [
    'src/payment/lightning/issuance.ts',
    'src/payment/lightning/issuer.ts',
    'src/payment/lightning/kept-replies.ts',
    'src/payment/lightning/node-watch.ts',
    'src/payment/lightning/nodes',
    'src/payment/lightning/offers.ts',
    'src/payment/lightning/open.ts',
    'src/payment/lightning/rail.ts',
    'src/payment/lightning/redeem.ts',
    'src/payment/lightning/serve-granted.ts',
    'src/wiring/lightning.ts',
    'src/config/lightning.ts',
  ],
  edits: [
    [SERVICE, "import { openLightning } from './lightning.ts';\n", ''],
    [SERVICE, '{ lightning: shop.lightning.status }', '{}'],
    [SERVICE, '  await shop.lightning.start();\n', ''],
    [SERVICE, '      await shop.lightning.stop();\n', ''],
    [
      SERVICE,
      '  const lightning = openLightning({ ...ground, store: lightningStore, challenges, running, timed });\n',
      '',
    ],
    [SERVICE, 'ownPayTo: lightning.payTo', 'ownPayTo: () => null'],
    [SERVICE, 'mpp, lightning, lightningStore', 'mpp, lightningStore'],
    [ROUTES, "import type { openLightning } from './lightning.ts';\n", ''],
    [ROUTES, '  lightning: ReturnType<typeof openLightning<AllSources>>;\n', ''],
    [ROUTES, 'offerOf, lightning, mpp }', 'offerOf, mpp }'],
    [
      ROUTES,
      '    lightning: {\n' +
        "      ...surface('lightning', lightning.routes, lightning.protocol),\n" +
        '      describe: lightning.describe(parts.listed),\n' +
        '    },\n',
      '',
    ],
    // No tool is sold there any more.
    [ROUTES, 'lightning: lightning.tools', 'lightning: usdcTools(offerOf)'],
    [ROUTES, 'isLightning: lightning.rail.recognises', 'isLightning: () => false'],
    [SETTINGS, "import { LIGHTNING, lightningOf } from './config/lightning.ts';\n", ''],
    [SETTINGS, '  lightning: LIGHTNING,\n', ''],
    [SETTINGS, '    lightning: lightningOf(seller.receiver, tables.lightning),\n', ''],
    cut(SELLERS, '  receiver: key(', '});'),
    [
      'src/catalogue/paths.ts',
      "onlyOn === undefined ? ['paid', 'lightning'] : [onlyOn]",
      "onlyOn === 'lightning' ? [] : ['paid']",
    ],
    ['src/pages/landing.ts', ' (<a href="/v1/lightning">rate and node</a>)', ''],
  ],
  // The tests of the checkouts sell one endpoint in both moneys.
  tests: [
    'test/support/lightning/issuer-bench.ts',
    'test/support/lightning/lightning-node-servers.ts',
    'test/support/lightning/rail-bench.ts',
    'test/support/lightning/receiver-bench.ts',
    'test/support/payment/checkout-calls.ts',
    'test/support/payment/checkout-world.ts',
    'test/support/rails/lightning.ts',
    'test/unit/payment/checkout',
    'test/unit/payment/lnbtc/macaroon.test.ts',
    'test/unit/payment/rails/lightning',
  ],
  testCases: [
    [BAZAAR, 'has at most 3 KiB on every Lightning route, and its body says the same'],
    ['test/unit/payment/open-protocols.test.ts', 'all header fields of a Lightning 402 stay within 8 KiB'],
  ],
  testEdits: [
    [
      'test/unit/payment/open-protocols.test.ts',
      "import { lightningProtocol } from '../../../src/wiring/lightning.ts';\n",
      '',
    ],
    ['test/http/server.test.ts', "['LIGHTNING_RECIEVER', 'LIGHTNING_RECEIVER']", "['LIGHTNING_RECIEVER', '']"],
    ['test/http/pages.test.ts', NODE_SHOWN, ''],
    // A word of the scheme that the facilitator does not say.
    [WORDS, '...LNBTC_REASONS]);', "...LNBTC_REASONS, 'exact_lnbtc_payment_not_paid']);"],
    [WORDS, "  'payment/lightning/redeem.ts: verdict.reason': 'the scheme’s list',\n", ''],
    [WORDS, "  'payment/lightning/redeem.ts: unreadable(call, credential, network)': 'the scheme’s list',\n", ''],
    [SUITE, "import { lightning } from '../../support/rails/lightning.ts';\n", ''],
    [SUITE, "    [lightning, ['expired', 'spent meanwhile']],\n", ''],
    [SUITE, 'usdcVoucher, lightning]', 'usdcVoucher]'],
    [SUITE, 'lightning: isHere(lightning)', 'lightning: false'],
  ],
};

export const PARTS: readonly Part[] = [CHANNELS, GATEWAY, MPP, LIGHTNING];
