import {
  capturedRefund,
  frontRunDeposit,
  killedWithChannel,
  poisonedRow,
  twoDevices,
  withdrawalInPeace,
  withdrawalUnseen,
} from './motifs-channels.ts';
import { claimedElsewhere, forgedProofs, redeemedTwice } from './motifs-lightning.ts';
import { killedInTheMiddle, noncesElsewhere, sleepingLeader, twoLedgers } from './motifs-others.ts';
import {
  dearForCheap,
  doomedWallets,
  griefing,
  manyGriefers,
  pausedToken,
  publicAuthorization,
  sameCallFails,
  shortValidity,
} from './motifs-usdc.ts';
import type { Motif } from './move.ts';
import type { Drawn, Sketch } from './sketch.ts';

/** Rows of moves by their names. */
export const MOTIFS: Readonly<Record<Motif, (sketch: Sketch) => Drawn[]>> = {
  'dear for cheap': dearForCheap,
  griefing,
  'many griefers': manyGriefers,
  'a public authorization': publicAuthorization,
  'short validity': shortValidity,
  'killed in the middle': killedInTheMiddle,
  'a paused token': pausedToken,
  'doomed wallets': doomedWallets,
  'nonces elsewhere': noncesElsewhere,
  'two ledgers': twoLedgers,
  'redeemed twice': redeemedTwice,
  'claimed elsewhere': claimedElsewhere,
  'forged proofs': forgedProofs,
  'a sleeping leader': sleepingLeader,
  'the same call fails in public': sameCallFails,
  'a withdrawal in peace': withdrawalInPeace,
  'a withdrawal while nobody looks': withdrawalUnseen,
  'two devices': twoDevices,
  'a captured refund': capturedRefund,
  'killed with a channel': killedWithChannel,
  'a front-run deposit': frontRunDeposit,
  'a poisoned row': poisonedRow,
};
