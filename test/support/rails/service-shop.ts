import { buildApp } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { createDeps } from '../../../src/wiring/deps.ts';
import { sourcedEndpoints } from './source.ts';

// The real service as a program of its own, which sells the endpoints of the tests: as src/server.ts starts it, but for the catalogue.

const config = loadConfig(process.env);
const log = createLogger(config.logLevel);
const deps = await createDeps(config, log, sourcedEndpoints<Sources>(String(process.env.SOURCE_URL)));
const app = await buildApp(deps);
await app.listen({ host: config.host, port: config.port });
process.on('SIGTERM', async () => {
  await app.close();
  await deps.close();
  process.exit(0);
});
