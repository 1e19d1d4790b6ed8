import { LEDGER_PLANTS } from './ledger.ts';
import { LIGHTNING_PLANTS } from './lightning.ts';
import type { Plant } from './plant.ts';
import { RELAYER_PLANTS } from './relayer.ts';
import { REMOTE_PLANTS } from './remote.ts';

/** Every planted fault. */
export const PLANTED: readonly Plant[] = [...RELAYER_PLANTS, ...REMOTE_PLANTS, ...LIGHTNING_PLANTS, ...LEDGER_PLANTS];
