import { CHANNEL_PLANTS } from './channels.ts';
import { LEDGER_PLANTS } from './ledger.ts';
import { LIGHTNING_PLANTS } from './lightning.ts';
import { MENDED_PLANTS } from './mended.ts';
import type { Plant } from './plant.ts';
import { RELAYER_PLANTS } from './relayer.ts';
import { REMOTE_PLANTS } from './remote.ts';

/** Every planted fault. */
export const PLANTED: readonly Plant[] = [
  ...MENDED_PLANTS,
  ...RELAYER_PLANTS,
  ...REMOTE_PLANTS,
  ...LIGHTNING_PLANTS,
  ...LEDGER_PLANTS,
  ...CHANNEL_PLANTS,
];
