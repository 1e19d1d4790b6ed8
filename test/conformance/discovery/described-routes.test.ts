import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { type AppDeps, buildApp } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import type { Mounted } from '../../../src/http/openapi/route.ts';
import { createDeps } from '../../../src/wiring/service.ts';

// What is served against what is described: everything that onRoute saw on the whole service stands in /openapi.json,
// or in the list here of what is for people and for the operator's machines.

/** Served and in no document. */
const UNDECLARED = [
  ...['/', '/docs', '/market', '/status', '/terms', '/docs/', '/market/', '/status/', '/terms/', '/preview.png'],
  ...['/assets/:file', '/favicon.ico', '/robots.txt'],
  // The answer to every preflight.
  '*',
  // The operator's; the demo's buyer; a second spelling of a declared path.
  ...['/metrics', '/demo/sign', '/.well-known/x402.json'],
  // For the MCP registry alone.
  '/.well-known/mcp-registry-auth',
];

let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
});
afterAll(() => network.stop());

interface Changes {
  /** More routes. */
  more?(app: FastifyInstance): void;
  /** Surfaces that are not mounted. */
  readonly without?: readonly (keyof AppDeps<Sources>)[];
}

/** Makes the whole service, and reads its routes and its document. */
async function read({ more = () => {}, without = [] }: Changes = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'percall-'));
  const wanted = embeddedEnvironment(network, { demoBuyer: true });
  // Every entry of the catalogue is sold: one without its source answers only payments from before.
  const usyc = { USYC_TOKEN: network.usdc, USYC_ORACLE: network.usdc };
  const proof = { MCP_REGISTRY_AUTH: `v=MCPv1; k=ed25519; p=${'A'.repeat(43)}=` };
  const config = loadConfig({ ...wanted, ...usyc, ...proof, DATA_DIR: dataDir });
  const deps = await createDeps(config, pino({ level: 'silent' }));
  let mounted: Mounted['mounted'] = [];
  const left = Object.entries(deps).filter(([name]) => !without.includes(name as keyof AppDeps<Sources>));
  const app = await buildApp<Sources>({
    ...(Object.fromEntries(left) as unknown as typeof deps),
    moreRoutes: async (scope, given) => {
      mounted = given.mounted;
      more(scope);
    },
  });
  const { paths } = (await app.inject('/openapi.json')).json() as { paths: object };
  await app.close();
  await deps.close();
  rmSync(dataDir, { recursive: true, force: true });
  return { served: [...new Set(mounted.map(({ url }) => url))], described: Object.keys(paths) };
}

/** As OpenAPI writes it. The network's own segment is a second spelling of `chain`. */
const written = (url: string) => url.replace(/:(\w+)/g, '{$1}').replace('/arc/', '/chain/');

const undescribed = ({ served, described }: Awaited<ReturnType<typeof read>>) =>
  served.filter((url) => !described.includes(written(url)) && !UNDECLARED.includes(url));

test('every served route is described, or named as undeclared; and what is described is served', async () => {
  const all = await read();
  expect(all.served.length).toBeGreaterThan(80);
  expect(undescribed(all)).toEqual([]);
  expect(UNDECLARED.filter((url) => !all.served.includes(url))).toEqual([]);
  const urls = all.served.map(written);
  expect(all.described.filter((path) => !urls.includes(path))).toEqual([]);
});

test('a served route that is described nowhere is found', async () => {
  const all = await read({ more: (app) => app.get('/v1/secret', async () => ({})) });
  expect(undescribed(all)).toEqual(['/v1/secret']);
});

test('a surface that is not mounted is in no document', async () => {
  const { described } = await read({ without: ['tools', 'lightning'] });
  expect(described.filter((path) => /^\/(mcp|v1\/lightning)/.test(path))).toEqual([]);
  expect(described).toContain('/v1/paid/chain/wallet');
});
