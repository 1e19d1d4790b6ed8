import { z } from 'zod';
import { ARC_SYSTEM_ADDRESS, type Transfer } from '../chain/erc20.ts';
import { formatUnits } from '../lib/units.ts';
import { addressField, bigInteger, decimal } from './chain-fields.ts';
import type { TokenUnits } from './tx-tokens.ts';

/** One movement of an ERC-20 token or of native USDC. */
export const transferField = z.strictObject({
  token: addressField(`Emitter of the log; ${ARC_SYSTEM_ADDRESS} is Arc's native USDC (18 decimals)`),
  symbol: z
    .string()
    .nullable()
    .meta({ description: 'As the contract says, not proof of anything; null when it says none' }),
  decimals: z.int().nullable().meta({ description: 'null when the contract does not say' }),
  from: addressField('Sender; the zero address when minted'),
  to: addressField('Recipient; the zero address when burned'),
  amount: decimal('In whole tokens').nullable().meta({ description: 'In whole tokens; null without decimals' }),
  amountRaw: bigInteger('In base units'),
  logIndex: z.int().nonnegative().meta({ description: 'Position of the log in its block' }),
});

/** Converts a decoded transfer into the published shape. */
export function showTransfer(
  { token, from, to, amount, logIndex }: Transfer,
  { symbol, decimals }: TokenUnits,
): z.output<typeof transferField> {
  const human = decimals === null ? null : formatUnits(amount, decimals);
  return { token, symbol, decimals, from, to, amount: human, amountRaw: amount.toString(), logIndex };
}
