import { createFacilitator } from '../../../src/facilitator/facilitator.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/common.ts';
import { openSqliteStores } from '../../../src/store/open.ts';
import { openPostgresStores } from '../../../src/store/open-postgres.ts';
import type { LightningStore } from '../../../src/store/ports/lightning.ts';
import { buildFacilitatorApp, facilitatorConfig } from '../../lib/lightning/facilitator-app.ts';

// The facilitator over the ledger in LEDGER_FILE or at LEDGER_URL, in a process of its own that a benchmark can measure,
// double and kill. The rest of the environment is the service's. GET /spent returns how many claims shared how many
// transactions, and the processor time so far.
const { PORT, LEDGER_FILE = '', LEDGER_URL } = process.env;
const config = facilitatorConfig(process.env);
const log = createLogger(config.logLevel);
const stores = LEDGER_URL
  ? await openPostgresStores({
      url: LEDGER_URL,
      poolSize: 10,
      connectTimeoutMs: 5000,
      statementTimeoutMs: 5000,
      clock: systemClock,
    })
  : openSqliteStores(LEDGER_FILE);
const groups = { claims: 0, commits: 0 };
const facilitator = createFacilitator({
  store: countGroups(stores.lightning),
  clock: systemClock,
  config: config.facilitator,
  publicOrigin: `http://127.0.0.1:${PORT}`,
  ownPayTo: () => null,
  log,
});
const app = buildFacilitatorApp(facilitator, config, log);
app.get('/spent', async () => {
  const { user, system } = process.cpuUsage();
  return { ...groups, cpuMicroseconds: user + system };
});
await app.listen({ host: '127.0.0.1', port: Number(PORT) });
process.once('SIGTERM', async () => {
  await app.close();
  await stores.close();
});

/** Claims of one commit resolve in one tick of the event loop. So ticks in which claims resolve are commits. */
function countGroups(store: LightningStore): LightningStore {
  let inTurn = false;
  const claim: LightningStore['claim'] = async (wanted) => {
    const outcome = await store.claim(wanted);
    groups.claims += 1;
    if (!inTurn) {
      inTurn = true;
      groups.commits += 1;
      setImmediate(() => {
        inTurn = false;
      });
    }
    return outcome;
  };
  return { ...store, claim };
}
