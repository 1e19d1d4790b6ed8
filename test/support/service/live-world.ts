import { startEmbeddedNetwork } from '../../../dev/network.ts';
import { namesEnvironment, serveFixtures, startNames } from '../upstream/names.ts';
import { startReplay } from '../upstream/replay.ts';
import { startService } from './service.ts';

const HTML = { 'content-type': 'text/html; charset=utf-8' };
const TEXT = 'Words. '.repeat(60);
const PAGE = `<html lang="en"><head><title>A page</title></head><body><h1>Hello</h1><p>${TEXT}</p></body></html>`;
const WEB = encodeURIComponent('http://good.example/page');

/** Priced calls that a service of `openLiveWorld` can answer without a network. */
export const BOUGHT = [
  ...['/v1/paid/fees/estimate', `/v1/paid/web/extract?url=${WEB}`, `/v1/paid/web/check?url=${WEB}`],
  ...['/v1/paid/domains/dns?name=example.com', '/v1/paid/domains/whois?domain=www.example.com'],
  ...['/v1/paid/currency/rates?base=EUR&date=2025-12-31', '/v1/paid/wiki/search?q=jupiter'],
  ...['/v1/paid/currency/convert?from=EUR&to=USD&amount=2.5&date=2025-12-31', '/v1/paid/wiki/summary?title=Jupiter'],
  ...['/v1/paid/wiki/article?title=Jupiter', `/v1/paid/chain/wallet?address=0x${'12'.repeat(20)}`],
];

/** A service on the embedded network, whose upstreams are stand-ins with fixed answers. */
export async function openLiveWorld() {
  const world = await startNames();
  serveFixtures(world);
  const pages = await startReplay({ '/page': { headers: HTML, body: PAGE } });
  const network = await startEmbeddedNetwork();
  const env = {
    MPP: 'on',
    ...namesEnvironment(world),
    ALLOW_TEST_HOSTS: `good.example=127.0.0.1:${pages.port}`,
  };
  const service = await startService(network, { env });
  return {
    network,
    service,
    async stop() {
      await service.stop();
      await network.stop();
      await pages.stop();
      await world.stop();
    },
  };
}
