import { createCatalogue } from '../../../src/discovery/foreign-catalogue.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import type { CatalogueCopy, CatalogueStore } from '../../../src/store/ports/stores.ts';
import { createUpstreams } from '../../../src/upstream/client/client.ts';
import type { Received, Recorded } from '../upstream/replay.ts';

export const CHAIN = { network: 'eip155:5042', usdc: `0x36${'0'.repeat(38)}` };
export const PAY_TO = `0x${'ab'.repeat(20)}`;

const accept = (extra: object, changes: object = {}) => ({
  scheme: 'exact',
  network: CHAIN.network,
  asset: CHAIN.usdc,
  amount: '5000',
  payTo: PAY_TO,
  maxTimeoutSeconds: 604_900,
  extra,
  ...changes,
});
/** Payable without the gateway; the next one is payable through the gateway. */
export const plain = (changes: object = {}) => accept({ name: 'USDC', version: '2' }, changes);
export const gateway = (changes: object = {}) => accept({ name: 'GatewayWalletBatched', version: '1' }, changes);

/** An item in the form of Circle's catalogue. `metadata` overrides members of its metadata. */
export function item(n: number | string, accepts: unknown = [gateway()], metadata: object = {}) {
  return {
    resource: `https://seller${n}.example/v1/thing`,
    type: 'http',
    x402Version: 2,
    accepts,
    metadata: { method: 'GET', path: '/v1/thing', description: `Thing ${n}`, ...metadata },
  };
}

/** Answers like a catalogue of these items that pages by limit and offset, with at most `most` items per page. */
export function paged(items: readonly unknown[], most = 200) {
  return ({ url }: Received): Recorded => {
    const query = new URL(url, 'http://127.0.0.1').searchParams;
    const [limit, offset] = [Math.min(Number(query.get('limit')), most), Number(query.get('offset'))];
    const pagination = { limit, offset, total: items.length };
    return { body: JSON.stringify({ x402Version: 2, items: items.slice(offset, offset + limit), pagination }) };
  };
}

/** The real reader on a local server, with its log. `close` ends its connections. */
export function openCatalogue(url: string, store: CatalogueStore, clock: Clock, timeoutMs = 60_000) {
  const upstreams = createUpstreams({ clock, userAgent: 'percall/test' });
  const upstream = upstreams.open({ name: 'catalogue', timeoutMs, maxBytes: 4 << 20, concurrency: 1, retries: 0 });
  const warned: string[] = [];
  const log = { warn: (_fields: object, message: string) => void warned.push(message) };
  const catalogue = createCatalogue({ upstream, url, payable: CHAIN, store, clock, log });
  return {
    catalogue,
    warned,
    read: () => catalogue.read(new AbortController().signal),
    close: () => upstreams.close(),
  };
}

/** The entries of a stored copy, or null. */
export const entriesOf = (copy: CatalogueCopy | null) =>
  copy === null ? null : (JSON.parse(copy.entries) as { entry: { url: string } }[]).map(({ entry }) => entry.url);
