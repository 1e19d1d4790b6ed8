import type { Clock } from '../../lib/clock.ts';
import type { ChainLog } from './log.ts';

/** What one provider said, beside what others said about the same block. */
export interface ProviderNote {
  /** The host of its URL, with the port where there is one. */
  readonly host: string;
  /** `apart`: two others contradict it. `disputed`: one other contradicts it, and no third has decided. */
  readonly kind: 'apart' | 'disputed';
  /** The call, its answer and the other answer, each cut to TEXT_LENGTH. */
  readonly question: string;
  readonly said: string;
  readonly others: string;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** Where notes are kept for all instances and over restarts. */
export interface ProviderNotes {
  /** The notes that still hold, oldest first. */
  list(nowMs: number): Promise<readonly ProviderNote[]>;
  put(note: ProviderNote): Promise<void>;
  /** Ends the disputes of this question, because its parties agree now. */
  agree(question: string): Promise<void>;
}

/** A contradiction counts for a day: long enough for an operator to see it, and a repaired provider comes back by itself. */
const HOLDS_MS = 86_400_000;
/** A disagreement that no block hash proves counts this long after it was last seen, in milliseconds. Its question may never be asked again. */
const UNPROVEN_MS = 60_000;
const TEXT_LENGTH = 500;

/** What a provider said, in the words of a `Statement`. */
export interface Said {
  readonly host: string;
  readonly about: string | null;
  readonly says: string;
}

/** Which providers are believed. Kept in memory, and in the ledger once one is given. */
export interface Trust {
  /** Whether the provider is set apart: it is asked for nothing. */
  isApart(host: string): boolean;
  /** The notes that hold now. */
  notes(): readonly ProviderNote[];
  /** Sets apart a provider that two others contradict about one block. */
  setApart(question: string, liar: Said, others: Said): void;
  /** Notes that providers differ and no third decides. Sales over the chain stop while such a note holds. */
  dispute(question: string, said: readonly Said[]): void;
  /** Ends the disputes of a question: its parties agree. */
  agree(question: string): void;
  /** Keeps the notes there from now on, beside those that it holds already. */
  keepIn(notes: ProviderNotes): void;
  /** Reads the notes of the other instances, and what the operator has ended. A failure leaves what is known. */
  refresh(): Promise<void>;
}

/** What is known of the providers, and where it is kept. */
interface State {
  readonly clock: Clock;
  readonly log: ChainLog;
  held: readonly ProviderNote[];
  /** Disagreements about different blocks, which prove nothing against either. They are not kept. */
  readonly unproven: Map<string, ProviderNote>;
  kept: ProviderNotes | null;
  /** Writes that are under way. A list that was read before their end lacks them. */
  writes: number;
}

/** Opens the trust in the providers of one chain. Every provider is believed until two statements contradict each other. */
export function createTrust(clock: Clock, log: ChainLog, onContradiction: (host: string) => void = () => {}): Trust {
  const state: State = { clock, log, held: [], unproven: new Map(), kept: null, writes: 0 };
  return {
    isApart: (host) => state.held.some((note) => note.host === host && note.kind === 'apart' && holds(state, note)),
    notes() {
      for (const [key, note] of state.unproven) if (!holds(state, note)) state.unproven.delete(key);
      return [...state.held.filter((note) => holds(state, note)), ...state.unproven.values()];
    },
    setApart(question, liar, others) {
      onContradiction(liar.host);
      hold(state, noteOf(clock, 'apart', question, liar, `others: ${others.says}`), SET_APART);
    },
    dispute(question, said) {
      const isProven = said.some(({ about }) => about !== null && said.filter((one) => one.about === about).length > 1);
      if (!isProven) return void disputeUnproven(state, question, said);
      for (const one of said) hold(state, noteOf(clock, 'disputed', question, one, wordsOf(said)), DISPUTED);
    },
    agree: (question) => agree(state, cut(question)),
    keepIn(notes) {
      state.kept = notes;
      for (const note of state.held) write(state, (store) => store.put(note));
    },
    async refresh() {
      if (!state.kept || state.writes > 0) return;
      const listed = await state.kept.list(clock.nowMs()).catch(() => null);
      // A note that was added meanwhile is in the next list.
      if (listed && state.writes === 0) state.held = listed;
    },
  };
}

const SET_APART = 'ALERT: two RPC providers contradict this one about a block; it is set apart for a day';
const DISPUTED = 'ALERT: RPC providers contradict each other and no third decides; sales over the chain stop';

const holds = ({ clock }: State, { untilMs }: ProviderNote): boolean => untilMs > clock.nowMs();

/** Adds a note that is not known yet. */
function hold(state: State, note: ProviderNote, message: string): void {
  const { host, kind, question, said, others } = note;
  const isSame = (known: ProviderNote) => known.host === host && known.kind === kind && known.question === question;
  if (state.held.some((known) => isSame(known) && holds(state, known))) return;
  state.held = [...state.held.filter((known) => holds(state, known)), note];
  state.log.error({ provider: host, question, said, others }, message);
  write(state, (notes) => notes.put(note));
}

function disputeUnproven({ clock, log, unproven }: State, question: string, said: readonly Said[]): void {
  const [first] = said;
  if (!first) return;
  const key = said.map(({ host }) => host).join(' ');
  const note = noteOf(clock, 'disputed', question, first, wordsOf(said));
  if (!unproven.has(key))
    log.error({ providers: key, question: note.question, said: note.said, others: note.others }, DISPUTED);
  unproven.set(key, { ...note, untilMs: note.sinceMs + UNPROVEN_MS });
}

function agree(state: State, question: string): void {
  const isEnded = (note: ProviderNote) => note.kind === 'disputed' && note.question === question;
  if (!state.held.some(isEnded)) return;
  state.held = state.held.filter((note) => !isEnded(note));
  state.log.info({ question }, 'the RPC providers agree again');
  write(state, (notes) => notes.agree(question));
}

function write(state: State, task: (notes: ProviderNotes) => Promise<void>): void {
  if (!state.kept) return;
  state.writes++;
  task(state.kept)
    .catch((err: unknown) => state.log.warn({ err }, 'what is known of the RPC providers was not stored'))
    .finally(() => {
      state.writes--;
    });
}

function noteOf(clock: Clock, kind: ProviderNote['kind'], question: string, said: Said, others: string): ProviderNote {
  const sinceMs = clock.nowMs();
  return {
    host: said.host,
    kind,
    question: cut(question),
    said: cut(said.says),
    others: cut(others),
    sinceMs,
    untilMs: sinceMs + HOLDS_MS,
  };
}

/** Who said what, shortened so that each has its part. */
function wordsOf(said: readonly Said[]): string {
  return said.map(({ host, about, says }) => `${host} says ${says.slice(0, 100)} of block ${about}`).join('; ');
}

function cut(text: string): string {
  return text.length <= TEXT_LENGTH ? text : `${text.slice(0, TEXT_LENGTH - 1)}…`;
}
