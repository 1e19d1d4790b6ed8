import { readFileSync, writeFileSync } from 'node:fs';
import { catalogue } from '../src/catalogue/catalogue.ts';
import type { Endpoint } from '../src/catalogue/endpoint.ts';
import { loadConfig } from '../src/config.ts';
import { createOpenApi } from '../src/http/openapi/openapi.ts';
import { TOOL_ROUTES } from '../src/mcp/mount.ts';
import { DECLARED } from '../src/routes/meta.ts';
import { offersUnder } from '../src/wiring/surfaces.ts';

// Writes openapi/openapi.json from the catalogue and a fixed example configuration. With --check it compares instead, and exits with 1 when they differ.

const FILE = new URL('../openapi/openapi.json', import.meta.url);

/** Mainnet with example addresses. Deployments differ only in the seller, the network and the server's address. */
const config = loadConfig({
  NETWORK: 'arc',
  PUBLIC_ORIGIN: 'https://api.example.com',
  SELLER_ADDRESS: '0x00000000000000000000000000000000000ca11e',
  RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
});
const offerOf = offersUnder(config);
const requirementOf = (endpoint: Endpoint<never>) => offerOf(endpoint).requirement;
const document = await createOpenApi({
  catalogue,
  declared: [...DECLARED, ...TOOL_ROUTES],
  requirementOf,
  chain: config.network,
  publicOrigin: config.publicOrigin,
});
const text = `${JSON.stringify(document, null, 2)}\n`;

if (!process.argv.includes('--check')) {
  writeFileSync(FILE, text);
  console.log('openapi/openapi.json is written');
} else if (committed() !== text) {
  console.error('openapi/openapi.json is not what the catalogue declares; run `npm run openapi` and commit the result');
  process.exitCode = 1;
}

function committed(): string | null {
  try {
    return readFileSync(FILE, 'utf8');
  } catch {
    return null;
  }
}
