import type { Move } from '../moves/move.ts';
import { readLedgers } from '../promises/ledger.ts';
import type { Presentation } from '../record/presentation.ts';
import { COLLECTOR, SETTLEMENT } from '../world/chain/channel-terms.ts';
import type { Hex } from '../world/chain/keys.ts';
import { EVENTS } from '../world/chain/settlement.ts';
import type { World } from '../world/world.ts';

/**
 * How often each thing happened in a seed: moves by their names (`move: `), answers to payments (`answer: `), what became of the money, and how many
 * purchases of honest buyers were judged.
 */
export function figuresOf(world: World, moves: readonly Move[], honestJudged: number): Record<string, number> {
  return {
    ...countOf(moves.map((move) => `move: ${nameOf(move)}`)),
    ...answersOf(world),
    ...outcomesOf(world),
    ...channelsOf(world),
    ...(honestJudged > 0 && { 'honest: judged': honestJudged }),
  };
}

/** With what was changed or wrong, where a move has kinds. */
function nameOf(move: Move): string {
  switch (move.do) {
    case 'again':
    case 'race':
    case 'redeem':
      return `${move.do}, ${move.change}`;
    case 'trap':
      return `trap, ${move.trap}`;
    case 'flood':
      return `flood, ${move.kind}`;
    case 'token':
    case 'disk':
    case 'ledger':
      return `${move.do}, ${move.how}`;
    case 'provider':
    case 'facilitator':
    case 'gateway':
    case 'node':
    case 'source':
      return `${move.do}, ${Object.keys(move.mood)[0]}`;
    default:
      return move.do;
  }
}

function countOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function answersOf({ book }: World): Record<string, number> {
  const said = ({ rail, request, reported, received }: Presentation): string => {
    const way = request.method === 'POST' ? `${rail} tool` : rail;
    if (reported) return `answer: ${way} ${reported.status} ${reported.code}`.trim();
    return `answer: ${way} ${received && 'broken' in received ? received.broken : 'none'}`;
  };
  return countOf(book.presentations().map(said));
}

/** What happened at the contract of payment channels; nothing in seeds that do not sell from them. */
function channelsOf({ scenario, chain, accounts }: World): Record<string, number> {
  if (!scenario.channels) return {};
  const count = (topic: Hex, by?: Hex): number =>
    chain
      .logs()
      .filter(
        ({ address, topics, hash }) =>
          address === SETTLEMENT && topics[0] === topic && (!by || chain.mined(hash)?.transaction.from === by),
      ).length;
  return {
    'channels: deposited': count(EVENTS.deposited),
    'channels: deposited by a third party': count(EVENTS.deposited, accounts.outsider.address),
    'channels: claimed': count(EVENTS.claimed),
    'channels: claimed by a third party': count(EVENTS.claimed, accounts.outsider.address),
    'channels: refunded': count(EVENTS.refunded),
    'channels: withdrawn': count(EVENTS.withdrawFinalized),
  };
}

function outcomesOf(world: World): Record<string, number> {
  const { book, chain, catalogue, instances, evidence, accounts, gateway, lightning } = world;
  const mined = chain.allMined();
  const sent = mined.filter(({ transaction }) => transaction.from === accounts.relayer.address);
  const ended = [...evidence.all()].map(([, one]) => one);
  const paid = ended.filter(({ kind, to }) => kind === 'paid' && to === accounts.seller.address);
  const transfers = gateway.transfers();
  return {
    presentations: book.presentations().length,
    sold: book.presentations().filter(({ reported }) => reported?.status === 200).length,
    transactions: mined.length,
    runs: catalogue.runs().length,
    starts: instances.reduce((sum, one) => sum + one.starts(), 0),
    'relayer: mined': sent.length,
    'relayer: reverted': sent.filter(({ ok }) => !ok).length,
    'chain: canceled': ended.filter(({ kind }) => kind === 'canceled').length,
    'chain: spent elsewhere': ended.filter(
      ({ kind, to }) => kind === 'paid' && to !== accounts.seller.address && to !== COLLECTOR,
    ).length,
    'chain: paid by a third party': paid.filter(({ sender }) => sender === accounts.outsider.address).length,
    'chain: paid by a facilitator': paid.filter(({ sender }) => sender === accounts.facilitator.address).length,
    'gateway: taken for us': transfers.filter(({ by }) => by !== null).length,
    'gateway: taken from the payer': transfers.filter(({ by }) => by === null).length,
    'lightning: paid': lightning.invoices().filter(({ ours, paid: isPaid }) => ours && isPaid).length,
    'lightning: claimed through the facilitator': readLedgers(world)
      .flatMap(({ claims }) => claims)
      .filter(({ grants }) => !grants).length,
    'lightning: of another tenant': lightning.invoices().filter(({ ours }) => !ours).length,
  };
}
