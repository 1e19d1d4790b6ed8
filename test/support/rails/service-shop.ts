import { buildApp } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/common.ts';
import { RAILS, type RailList } from '../../../src/wiring/rails.ts';
import { createDeps } from '../../../src/wiring/service.ts';
import { sourcedEndpoints } from './source.ts';
import { createToyRail } from './toy-rail.ts';

// The real service as a program of its own, as src/server.ts starts it, with two differences: it sells the endpoints of the tests, and where there is a
// bank of the toy rail, the list of rails has the toy rail as one more entry.

const config = loadConfig(process.env);
const log = createLogger(config.logLevel);
const { SOURCE_URL, TOY_BANK_URL: bankUrl } = process.env;
const catalogue = sourcedEndpoints<Sources>(String(SOURCE_URL));
const rails: RailList = bankUrl === undefined ? RAILS : [...RAILS, createToyRail(bankUrl)];
const deps = await createDeps(config, log, catalogue, systemClock, rails);
const app = await buildApp(deps);
await app.listen({ host: config.host, port: config.port });
process.on('SIGTERM', async () => {
  await app.close();
  await deps.close();
  process.exit(0);
});
