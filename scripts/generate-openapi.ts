import { catalogue } from '../src/catalogue/catalogue.ts';
import type { Endpoint } from '../src/catalogue/endpoint.ts';
import { loadConfig } from '../src/config.ts';
import { createOpenApi } from '../src/http/openapi/openapi.ts';
import { TOOL_ROUTES } from '../src/mcp/mount.ts';
import { DECLARED } from '../src/routes/meta.ts';
import { offersUnder } from '../src/wiring/surfaces.ts';
import { EXAMPLE_ENVIRONMENT, keepGenerated } from './lib/generated.ts';

// Writes openapi/openapi.json from the catalogue and a fixed example configuration. With --check it compares instead, and exits with 1 when they differ.

const config = loadConfig(EXAMPLE_ENVIRONMENT);
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

keepGenerated('openapi/openapi.json', text, 'what the catalogue declares; run `npm run openapi`');
