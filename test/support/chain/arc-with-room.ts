import { arc } from 'viem/chains';

/** Arc for viem's wallets in tests: a transaction offers ten times the base fee, so that it is mined however much that rose since the wallet read it. */
export const arcWithRoom = { ...arc, fees: { baseFeeMultiplier: 10 } };
