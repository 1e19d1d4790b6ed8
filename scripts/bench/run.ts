import { benchCollector } from './collector.ts';
import { benchExtract } from './extract.ts';
import { benchLedger } from './ledger.ts';
import { benchPaid } from './paid.ts';
import { benchProof } from './proof.ts';
import { benchSearch } from './search.ts';
import { benchSettle } from './settle.ts';
import { benchUnpaid } from './unpaid.ts';
import { benchWorkers } from './workers.ts';

const benches: Record<string, () => Promise<void>> = {
  unpaid: benchUnpaid,
  paid: benchPaid,
  collector: benchCollector,
  extract: benchExtract,
  proof: benchProof,
  search: benchSearch,
  settle: benchSettle,
  workers: benchWorkers,
  ledger: benchLedger,
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => !benches[name]);
if (unknown.length > 0) {
  console.error(`no such bench: ${unknown.join(', ')}; there are ${Object.keys(benches).join(', ')}`);
  process.exit(2);
}
for (const name of names.length > 0 ? names : Object.keys(benches)) await benches[name]?.();
