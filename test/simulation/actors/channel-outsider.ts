import type { Handlers, MoveOf } from '../moves/move.ts';
import { depositCall, finalizeCall, SETTLEMENT, withdrawCall } from '../world/chain/channel-terms.ts';
import { channelOf } from '../world/chain/settlement.ts';
import type { Transaction } from '../world/chain/transactions.ts';
import type { World } from '../world/world.ts';
import type { ChannelPayers, HeldChannel } from './channel-payers.ts';
import { sendFrom } from './outsider.ts';

/** What payers of channels, and others, do at the settlement contract without the service. */
export function createChannelOutsider(world: World, { held, lastDeposit }: ChannelPayers): Handlers {
  const { chain, accounts } = world;
  let copying: number | null = null;

  const withChannel =
    <M extends { readonly of: string }>(act: (channel: HeldChannel, move: M) => void) =>
    (move: M): void => {
      const channel = held.get(move.of);
      if (channel) act(channel, move);
    };

  /** By the payer's own key, or by the key that signs a wallet's vouchers. */
  function withdraw({ payer, config, channelId }: HeldChannel, { percent, tipGwei }: MoveOf<'withdraw'>): void {
    const { balance, totalClaimed } = channelOf(chain.viewAt(chain.head()), channelId);
    const units = ((balance - totalClaimed) * BigInt(percent)) / 100n;
    sendFrom(world, payer.account, { to: SETTLEMENT, data: withdrawCall(config, units), tipGwei });
  }

  function copy({ from, to, data, tip }: Transaction): boolean {
    if (from !== accounts.relayer.address || to !== SETTLEMENT || copying === null) return false;
    const tipGwei = Number(tip / 1_000_000_000n) + copying;
    copying = null;
    sendFrom(world, accounts.outsider, { to, data, tipGwei });
    return true;
  }
  chain.onSubmit(copy);

  return {
    withdraw: withChannel(withdraw),
    finalize: withChannel(({ payer, config }, { tipGwei }: MoveOf<'finalize'>) =>
      sendFrom(world, payer.account, { to: SETTLEMENT, data: finalizeCall(config), tipGwei }),
    ),
    'third party deposits': withChannel((channel, { tipGwei }: MoveOf<'third party deposits'>) => {
      const deposit = lastDeposit(channel);
      const data = deposit && depositCall(channel.config, deposit);
      if (data) sendFrom(world, accounts.outsider, { to: SETTLEMENT, data, tipGwei });
    }),
    /** The next call of the relayer's at the contract is sent by a third party too, who offers more. */
    'copy operation': ({ tipGwei }) => {
      copying = tipGwei;
      chain.pending().some(copy);
    },
    poison: withChannel(({ channelId }) => chain.change((view) => view.set(`poisoned ${channelId}`, true))),
  };
}
