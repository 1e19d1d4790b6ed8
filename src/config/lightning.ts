import { z } from 'zod';
import { key, needed, optional, type Rule, type Settings, table } from './table.ts';
import { baseUrl, is, oneOf, text, whole } from './values.ts';

// Through which node is sold over Lightning, and how many invoices are made.

const secret = z.string().min(1);
const compressedKey = text(/^0[23][0-9a-f]{64}$/, 'a compressed public key of 66 lower-case hex digits');
const macaroon = text(/^(?:[0-9a-fA-F]{2})+$/, 'the macaroon as hex digits');
/** It is sent in a header unchanged. */
const rune = text(/^[\w=-]+$/, 'the rune as the node printed it');
const WALLET = 'a nostr+walletconnect:// connection with the wallet, a ws or wss relay and a secret';

/** NIP-47: 32 bytes of hex for the wallet and for the secret, and the relays' URLs. */
function isWalletConnection(text: string): boolean {
  const url = URL.parse(text);
  if (url?.protocol !== 'nostr+walletconnect:' || !/^[0-9a-f]{64}$/.test(url.host)) return false;
  const relays = url.searchParams.getAll('relay');
  const reachable = relays.every((relay) => /^wss?:$/.test(URL.parse(relay)?.protocol ?? ''));
  return relays.length > 0 && reachable && /^[0-9a-f]{64}$/.test(url.searchParams.get('secret') ?? '');
}

const by = (...kinds: readonly string[]): Rule => {
  return ({ LIGHTNING_RECEIVER: kind = '' }) => kinds.includes(kind) && `LIGHTNING_RECEIVER=${kind} needs it`;
};
const WHAT_RECEIVERS_NEED = [
  ...needed(['LIGHTNING_NODE_URL'], by('lnd', 'cln', 'phoenixd')),
  ...needed(['LND_MACAROON'], by('lnd')),
  ...needed(['CLN_RUNE'], by('cln')),
  ...needed(['PHOENIXD_PASSWORD'], by('phoenixd')),
  ...needed(['NWC_CONNECTION'], by('nwc')),
];

export const LIGHTNING = table('Lightning', WHAT_RECEIVERS_NEED, {
  network: key('LIGHTNING_NETWORK', oneOf('mainnet', 'testnet'), 'mainnet')`The network of the node's invoices.`,
  url: optional('LIGHTNING_NODE_URL', baseUrl)`Base URL of the node's REST interface (lnd, cln, phoenixd).`,
  tlsCertFile: optional('LIGHTNING_NODE_TLS_CERT', secret)`File with the node's own TLS certificate (PEM), when no
    public authority signed it (lnd, cln).`,
  nodeKey: optional('LIGHTNING_NODE_KEY', compressedKey)`The node's public key. A node with another is refused.`,
  shared: key('LIGHTNING_NODE_SHARED', is('true', 'false'), 'false')`true when other services make invoices with this
    node's key (custodial wallets). Then only recorded invoices count, and the node confirms each payment.`,
  macaroon: optional('LND_MACAROON', macaroon)`LND's macaroon as hex; \`lncli bakemacaroon info:read invoices:read
    invoices:write\` is enough. At start the log warns of a macaroon that may spend.`,
  rune: optional('CLN_RUNE', rune)`Core Lightning's rune; restrict it to invoice, listinvoices and getinfo.`,
  password: optional('PHOENIXD_PASSWORD', secret)`phoenixd's \`http-password-limited-access\`, as in phoenix.conf.`,
  connection: optional('NWC_CONNECTION', z.string().refine(isWalletConnection, WALLET))`The nostr+walletconnect://
    connection of a wallet; one that may pay is refused.`,
  invoicesPerMinute: {
    client: key('LIGHTNING_INVOICES_PER_MINUTE', whole(), '30')`New invoices per minute for one client (see Limits).
      Each costs the node work and runs a handler. 0 is off.`,
    total: key('LIGHTNING_INVOICES_TOTAL_PER_MINUTE', whole(), '600')`The same for all clients together, shared fairly:
      a client gets another invoice only while it has no more than are left. When they are short, each client gets an
      equal part. A fifth is reserved for clients that have paid within the hour; half of that also serves newcomers.`,
  },
  timeoutMs: key('LIGHTNING_TIMEOUT_MS', whole(1), '5000')`For one request to the node.`,
});

/** A null receiver: nothing is sold over Lightning. The rules have refused to go on without what a kind needs. */
export function lightningOf(kind: 'none' | 'lnd' | 'cln' | 'phoenixd' | 'nwc', settings: Settings<typeof LIGHTNING>) {
  const { network, nodeKey, shared, invoicesPerMinute, timeoutMs, tlsCertFile } = settings;
  const url = settings.url ?? '';
  const receivers = {
    none: null,
    lnd: { kind: 'lnd', url, macaroon: settings.macaroon ?? '', tlsCertFile },
    cln: { kind: 'cln', url, rune: settings.rune ?? '', tlsCertFile },
    phoenixd: { kind: 'phoenixd', url, password: settings.password ?? '' },
    nwc: { kind: 'nwc', connection: settings.connection ?? '' },
  } as const;
  return { network, receiver: receivers[kind], nodeKey, shared, invoicesPerMinute, timeoutMs };
}
