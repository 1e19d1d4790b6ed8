import type { LedgerMood } from '../ledger/pace.ts';
import type { Wallet } from '../world/chain/wallets.ts';
import type { FacilitatorMood } from '../world/facilitator.ts';
import type { GatewayMood } from '../world/gateway.ts';
import type { NodeMood } from '../world/lightning.ts';
import type { ProviderMood } from '../world/providers.ts';
import type { SourceMood } from '../world/sources.ts';

/** What is different when something is presented again. */
export type Change =
  | 'nothing'
  | 'the request'
  | 'the parameters'
  | 'the spelling'
  | 'the amount'
  | 'amount and request'
  | 'the recipient'
  | 'not valid before'
  | 'not valid after'
  | 'the signature'
  | 'the twin of the signature'
  | 'a signature over other terms'
  | 'the rail'
  | 'the preimage'
  | 'the invoice';

/** What is presented in place of the voucher that a client would sign next. */
export type ChannelChange =
  | 'nothing'
  | 'the last one again'
  | 'the last one for another request'
  | 'an old one'
  | 'a higher ceiling'
  | 'a lower ceiling'
  | 'the twin of the signature'
  | 'v of 0 or 1'
  | 'another key'
  | 'another channel';

/** A presentation's own circumstances. */
export interface Presented {
  /** The client's address. */
  readonly from: string;
  /** The instance that the load balancer chooses. */
  readonly at: string;
  readonly identifier: string | null;
  /** The client hangs up after so many milliseconds. */
  readonly abandonMs: number | null;
  readonly viaTools: boolean;
}

/** What an adversary does by a trap when the service lets a payer's authorization out of its hands. */
export type Trap =
  | 'moves the balance'
  | 'grows code'
  | 'turns the wallet'
  | 'cancels'
  | 'spends elsewhere'
  | 'is sent by a third party'
  | 'is sent past its channel';

/**
 * One move of a seed: plain data, so that a list of them can be written down, shortened and played again. `id` names what a move makes; later moves
 * refer to it by `of`. One whose reference is gone does nothing.
 */
export type Move = { readonly pauseMs: number } & (
  | ({
      readonly do: 'buy';
      readonly id: string;
      readonly payer: string;
      readonly route: string;
      readonly rail: 'usdc' | 'gateway';
      readonly validFor: number;
      readonly validSince: number;
    } & Presented)
  | ({ readonly do: 'again'; readonly of: string; readonly change: Change; readonly route: string } & Presented)
  | ({
      readonly do: 'race';
      readonly of: string;
      readonly change: Change;
      readonly route: string;
      readonly times: number;
    } & Presented)
  | { readonly do: 'cancel' | 'spend elsewhere' | 'third party sends'; readonly of: string; readonly tipGwei: number }
  | { readonly do: 'trap'; readonly payer: string; readonly trap: Trap; readonly backMs: number | null }
  | { readonly do: 'move balance'; readonly payer: string; readonly backMs: number | null }
  | {
      readonly do: 'program';
      readonly payer: string;
      readonly turnsWhen: Wallet['turnsWhen'];
      readonly turnsTo: Wallet['turnsTo'];
      readonly trusting: boolean;
    }
  | { readonly do: 'shed code'; readonly payer: string }
  | { readonly do: 'wait' | 'leap'; readonly ms: number }
  | {
      readonly do: 'flood';
      readonly kind: FloodKind;
      readonly perSecond: number;
      readonly seconds: number;
      readonly addresses: number;
      readonly ipv6: boolean;
    }
  | ({ readonly do: 'offer'; readonly id: string; readonly route: string } & Presented)
  | { readonly do: 'pay'; readonly of: string }
  | ({
      readonly do: 'redeem';
      readonly of: string;
      readonly change: Change;
      readonly route: string;
      readonly times: number;
    } & Presented)
  | { readonly do: 'claim'; readonly of: string; readonly from: string; readonly at: string }
  | ({ readonly do: 'forge'; readonly of: string; readonly id: string } & Presented)
  | { readonly do: 'deposit'; readonly payer: string; readonly units: number }
  | { readonly do: 'hand over'; readonly of: string; readonly to: 'the seller' | 'elsewhere' }
  | { readonly do: 'batch' }
  | { readonly do: 'kill'; readonly at: string; readonly afterEvents: number; readonly downMs: number }
  | { readonly do: 'stop'; readonly at: string; readonly downMs: number }
  | { readonly do: 'sleep'; readonly at: string; readonly ms: number }
  | { readonly do: 'provider'; readonly number: number; readonly mood: Partial<ProviderMood>; readonly ms: number }
  | { readonly do: 'facilitator'; readonly mood: Partial<FacilitatorMood>; readonly ms: number }
  | { readonly do: 'gateway'; readonly mood: Partial<GatewayMood>; readonly ms: number }
  | { readonly do: 'node'; readonly mood: Partial<NodeMood>; readonly ms: number }
  | { readonly do: 'source'; readonly which: number; readonly mood: Partial<SourceMood>; readonly ms: number }
  | { readonly do: 'ledger'; readonly how: LedgerMood['how']; readonly percent: number; readonly ms: number }
  | { readonly do: 'disk'; readonly at: string; readonly how: 'full' | 'read-only'; readonly ms: number }
  | { readonly do: 'token'; readonly how: 'paused' | 'seller blocked'; readonly ms: number }
  | { readonly do: 'fee'; readonly gwei: number; readonly ms: number }
  | { readonly do: 'stall' | 'moody'; readonly ms: number }
  | { readonly do: 'drop pending' }
  | { readonly do: 'relayer gas'; readonly usdc: number; readonly ms: number }
  | { readonly do: 'price'; readonly percent: number }
  | ChannelMove
);

/** Moves of payers with channels, and of who watches them. `device` is whose memory of the channel counts. */
type ChannelMove =
  | ({
      readonly do: 'open channel';
      readonly id: string;
      readonly payer: string;
      /** Whose key signs vouchers: the payer itself, a wallet's owner, or nobody's. */
      readonly authorizer: 'itself' | 'its key' | 'nobody';
      readonly route: string;
      readonly units: number;
      readonly validFor: number;
    } & Presented)
  | ({
      readonly do: 'voucher';
      readonly of: string;
      readonly device: 'first' | 'second';
      readonly change: ChannelChange;
      readonly route: string;
      /** At once, spread over the instances. */
      readonly times: number;
      /** Signs once more when it is corrected. */
      readonly retries: boolean;
    } & Presented)
  | ({
      readonly do: 'top up';
      readonly of: string;
      readonly device: 'first' | 'second';
      readonly change: 'nothing' | 'the last one again' | 'the last one for another request';
      readonly route: string;
      readonly units: number;
      readonly validFor: number;
    } & Presented)
  | ({
      readonly do: 'refund';
      readonly of: string;
      readonly change: 'nothing' | 'the last one again';
      readonly units: number | null;
      readonly times: number;
    } & Presented)
  | { readonly do: 'withdraw'; readonly of: string; readonly percent: number; readonly tipGwei: number }
  | { readonly do: 'finalize' | 'third party deposits'; readonly of: string; readonly tipGwei: number }
  | { readonly do: 'copy operation'; readonly tipGwei: number }
  | { readonly do: 'poison'; readonly of: string };

export type FloodKind = 'bad signatures' | 'empty accounts' | 'unpaid offers' | 'garbage';

type Primitive = Move['do'];

/** Rows of moves that only together show something; each becomes the moves that it is made of. */
export type Motif =
  | 'dear for cheap'
  | 'griefing'
  | 'many griefers'
  | 'a public authorization'
  | 'short validity'
  | 'killed in the middle'
  | 'a paused token'
  | 'doomed wallets'
  | 'nonces elsewhere'
  | 'two ledgers'
  | 'redeemed twice'
  | 'claimed elsewhere'
  | 'forged proofs'
  | 'a sleeping leader'
  | 'the same call fails in public'
  | 'a withdrawal in peace'
  | 'a withdrawal while nobody looks'
  | 'two devices'
  | 'a captured refund'
  | 'killed with a channel'
  | 'a front-run deposit'
  | 'a poisoned row';

export type MoveName = Primitive | Motif;
export type MoveOf<Name extends Primitive> = Extract<Move, { readonly do: Name }>;

/** What each kind of move does; it returns at once, and what it began goes on. */
export type Handlers = { readonly [Name in Move['do']]?: (move: MoveOf<Name>) => unknown };
