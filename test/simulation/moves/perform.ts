import { createAdversary } from '../actors/adversary.ts';
import { createChannelOutsider } from '../actors/channel-outsider.ts';
import { createChannelPayers } from '../actors/channel-payers.ts';
import type { Desk } from '../actors/desk.ts';
import { createFlooding } from '../actors/flood.ts';
import { createOutsider } from '../actors/outsider.ts';
import { CLIENTS, runAs } from '../engine/owner.ts';
import type { World } from '../world/world.ts';
import type { Handlers, Move } from './move.ts';
import { createTroubles } from './trouble-makers.ts';

/** Plays moves in a world. */
export function createPlayer(world: World, desk: Desk) {
  const adversary = createAdversary(world, desk, world.random('adversary'));
  const channels = createChannelPayers(world, desk, world.random('channel payers'));
  const outsider = createOutsider(world, adversary, channels);
  const { instances, gateway, payers, scheduler } = world;
  const times = <M extends { readonly times: number }>(move: M, present: (move: M, time: number) => void) => {
    for (let time = 0; time < move.times; time++) present(move, time);
  };

  const handlers: Handlers = {
    ...createTroubles(world),
    ...outsider.handlers,
    ...createChannelOutsider(world, channels),
    buy: adversary.buy,
    again: (move) => adversary.again(move, move),
    // Spread over the instances, as by a load balancer.
    race: (move) =>
      times(move, (one, at) => adversary.again(one, { ...one, at: instances[at % instances.length]?.name ?? one.at })),
    offer: adversary.offer,
    pay: adversary.pay,
    redeem: (move) => times(move, (one) => adversary.redeem(one)),
    claim: adversary.claim,
    forge: adversary.forge,
    deposit: ({ payer, units }) => gateway.deposit(payers.get(payer).address, BigInt(units)),
    batch: gateway.batch,
    'open channel': channels.open,
    voucher: (move) =>
      times(move, (one, at) =>
        channels.voucher(one, at === 0 ? one.at : (instances[at % instances.length]?.name ?? one.at)),
      ),
    'top up': channels.topUp,
    refund: channels.refund,
    flood: createFlooding(world, desk, world.random('flood')),
  };

  return {
    adversary,
    channels,
    /** Performs one move and lets time pass as it says. */
    play: async (move: Move): Promise<void> => {
      const handler = handlers[move.do] as ((move: Move) => unknown) | undefined;
      if (!handler && move.do !== 'wait' && move.do !== 'leap') throw new Error(`nothing performs "${move.do}"`);
      runAs(CLIENTS, () => handler?.(move));
      if (move.do === 'leap') {
        world.noteSuspended(move.ms);
        scheduler.leap(move.ms);
      }
      const waitMs = move.do === 'wait' ? move.ms : 0;
      await scheduler.runUntil(scheduler.nowMs() + waitMs + move.pauseMs);
    },
  };
}
