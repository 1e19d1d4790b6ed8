import type { MoveName } from '../moves/move.ts';

/** What a seed sets up: a configuration, and how likely each kind of move is. */
export interface Scenario {
  readonly name: string;
  readonly settler: 'relayer' | 'facilitator' | 'circle';
  readonly gateway: boolean;
  /** Payment channels are sold from; absent in moves that were written down before there were any. */
  readonly channels?: boolean;
  readonly lightning: 'off' | 'own' | 'shared';
  /** Processes over one ledger. */
  readonly instances: number;
  /** A second service for the same seller, with a ledger of its own. */
  readonly twin: boolean;
  readonly tools: boolean;
  readonly providers: number;
  /** Requests a second that each provider takes; null is any number. */
  readonly perSecond: number | null;
  /** Nothing of the world breaks: then honest buyers are served at the agreed rate. */
  readonly fair: boolean;
  /** A pause between the purchases of an honest buyer, milliseconds; 0 is no honest buyers. */
  readonly honestEveryMs: number;
  readonly env: Readonly<Record<string, string>>;
  readonly weights: Readonly<Partial<Record<MoveName, number>>>;
  /** Between moves, at the most. */
  readonly pauseMs: number;
}
