import { benchChannelGas } from './channel-gas.ts';
import { benchChannels } from './channels.ts';
import { benchCollector } from './collector.ts';
import { benchExtract } from './extract.ts';
import { benchFlood } from './flood.ts';
import { benchLedger } from './ledger.ts';
import { Usage } from './lib.ts';
import { benchLightning } from './lightning.ts';
import { benchPaid } from './paid.ts';
import { benchProof } from './proof.ts';
import { benchSearch } from './search.ts';
import { benchSettle } from './settle.ts';
import { benchUnpaid } from './unpaid.ts';

/** The benchmarks by name. Each gets the command-line words from the first option on; most take none. */
const benches: Record<string, (options: readonly string[]) => Promise<void>> = {
  unpaid: benchUnpaid,
  paid: benchPaid,
  channels: benchChannels,
  'channel-gas': benchChannelGas,
  collector: benchCollector,
  extract: benchExtract,
  proof: benchProof,
  search: benchSearch,
  settle: benchSettle,
  ledger: benchLedger,
  lightning: benchLightning,
  flood: benchFlood,
};

const words = process.argv.slice(2);
const firstOption = words.findIndex((word) => word.startsWith('--'));
const names = firstOption < 0 ? words : words.slice(0, firstOption);
const options = firstOption < 0 ? [] : words.slice(firstOption);
const unknown = names.filter((name) => !benches[name]);
if (unknown.length > 0) {
  console.error(`no such bench: ${unknown.join(', ')}; there are ${Object.keys(benches).join(', ')}`);
  process.exit(2);
}
const OPTIONED = ['flood', 'unpaid', 'paid', 'channels', 'settle', 'ledger', 'lightning'];
if (options.length > 0 && !OPTIONED.includes(names.join())) {
  console.error(`only ${OPTIONED.join(', ')} take options, and alone: ${options.join(' ')}`);
  process.exit(2);
}
try {
  for (const name of names.length > 0 ? names : Object.keys(benches)) await benches[name]?.(options);
} catch (error) {
  if (!(error instanceof Usage)) throw error;
  console.error(error.message);
  process.exit(2);
}
