import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { type Service, startService } from '../../support/service/service.ts';

const PATH = '/v1/paid/fees/estimate';

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  const env = { ...embeddedEnvironment(network, { channels: true }), RECONCILE_INTERVAL_MS: '200' };
  service = await startService(network, { env });
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

/** The schemes in which the 402 of a route may be paid, and those that the manifest lists for it. */
async function schemes(): Promise<{ asked: string[]; listed: string[] }> {
  const { headers } = await fetch(service.origin + PATH);
  const challenge = JSON.parse(atob(String(headers.get('payment-required'))));
  const manifest = await (await fetch(`${service.origin}/.well-known/x402`)).json();
  const { items } = manifest as { items: { resource: string; accepts: { scheme: string }[] }[] };
  const names = (accepts: readonly { scheme: string }[]) => accepts.map(({ scheme }) => scheme);
  const item = items.find(({ resource }) => resource.endsWith(PATH));
  return { asked: names(challenge.accepts), listed: names(item?.accepts ?? []) };
}

test('the manifest lists payment channels as soon as a 402 offers them', async () => {
  await schemes();
  await untilChannelsAreOffered(service.origin + PATH);
  expect(await schemes()).toEqual({ asked: ['exact', 'batch-settlement'], listed: ['exact', 'batch-settlement'] });
});

test('the price list and the OpenAPI document list payment channels as soon as a 402 offers them', async () => {
  await untilChannelsAreOffered(service.origin + PATH);
  const read = async (path: string) => (await fetch(service.origin + path)).json();
  const { routes } = (await read('/v1/paid')) as { routes: { route: string; accepts: Entry[] }[] };
  const listed = routes.find(({ route }) => route.endsWith(PATH))?.accepts ?? [];
  expect(listed.map(({ scheme }) => scheme)).toEqual(['exact', 'batch-settlement']);
  expect(listed[1]?.extra).toMatchObject({ minDeposit: '1000000', withdrawDelay: 86_400 });
  const { paths } = (await read('/openapi.json')) as { paths: Record<string, { get: { 'x-payment-info': Info } }> };
  const protocols = paths[PATH]?.get['x-payment-info'].protocols ?? [];
  expect(protocols.map(({ x402 }) => x402.scheme)).toEqual(['exact', 'batch-settlement']);
});

interface Entry {
  readonly scheme: string;
  readonly extra: Record<string, unknown>;
}

interface Info {
  readonly protocols: readonly { readonly x402: { readonly scheme: string } }[];
}
