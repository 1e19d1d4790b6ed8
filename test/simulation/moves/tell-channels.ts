import type { Move, MoveOf } from './move.ts';

type ChannelMove = MoveOf<
  | 'open channel'
  | 'voucher'
  | 'top up'
  | 'refund'
  | 'withdraw'
  | 'finalize'
  | 'third party deposits'
  | 'copy operation'
  | 'poison'
>;

/** A channel's move as a person reads it, `way` being how it is presented; null for any other move. */
export function tellChannelMove(
  move: Move,
  way: (move: Extract<ChannelMove, { from: string }>) => string,
): string | null {
  switch (move.do) {
    case 'open channel':
      return `${move.payer} opens channel ${move.id} with ${move.units} base units, signed for by ${move.authorizer}, and calls ${move.route} ${way(move)}`;
    case 'voucher':
      return `the ${move.device} device of channel ${move.of} presents ${changed(move.change)} for ${move.route}${move.times > 1 ? ` ${move.times} times at once` : ''} ${way(move)}${move.retries ? ', and signs once more where it is corrected' : ''}`;
    case 'top up':
      return `the ${move.device} device of channel ${move.of} deposits ${move.units} base units${move.change === 'nothing' ? '' : ` by ${move.change}`} and calls ${move.route} ${way(move)}`;
    case 'refund':
      return `${move.change === 'nothing' ? 'a refund' : 'the refund that was asked for last'} of ${move.units ?? 'everything'} is asked for from channel ${move.of}${move.times > 1 ? ` ${move.times} times at once` : ''} ${way(move)}`;
    case 'withdraw':
      return `the payer of channel ${move.of} asks the contract for ${move.percent} % of what is left`;
    case 'finalize':
      return `the payer of channel ${move.of} carries its withdrawal out`;
    case 'third party deposits':
      return `a third party sends the last deposit of channel ${move.of}`;
    case 'copy operation':
      return 'a third party sends the relayer’s next call of the settlement contract first';
    case 'poison':
      return `claims of channel ${move.of} revert from now on`;
    default:
      return null;
  }
}

function changed(change: string): string {
  return change === 'nothing' ? 'its next voucher' : `a voucher (${change})`;
}
