import { hash } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';

// Which providers are believed. Each is, until two statements about one block contradict each other. One that two
// others contradict is set apart for a day and asked for nothing. Without a third neither counts for a sale, and the
// question is asked again. The ledger has notes of it. The operator may delete one (`ledger -- trust HOST`).

export interface Trust {
  isApart(host: string): boolean;
  notes(): readonly ProviderNote[];
  setApart(question: string, liar: Said, others: Said): void;
  /** Notes that providers differ and no third decides. Each `refresh` calls `again` until a majority decides. */
  dispute(question: string, said: readonly Said[], again: () => Promise<unknown>): void;
  /** Ends a question's disputes: its parties agree. */
  agree(question: string): void;
  /** Keeps the notes there from now on, beside those that it holds already. */
  keepIn(notes: ProviderNotes): void;
  /** Reads others' notes and what the operator ended, then asks disputes again. A failure leaves what is known. */
  refresh(): Promise<void>;
}

/** What a provider said, in the words of a `Statement`. */
export interface Said {
  readonly host: string;
  readonly about: string | null;
  readonly says: string;
}

export interface ProviderNote {
  readonly host: string;
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
  agree(question: string): Promise<void>;
}

interface State {
  readonly clock: Clock;
  readonly log: Log;
  held: readonly ProviderNote[];
  /** Notes that were not stored yet. A list of what is stored lacks them. */
  readonly unsaved: Set<ProviderNote>;
  /** How the question of an open dispute is asked again. */
  readonly open: Map<string, () => Promise<unknown>>;
  kept: ProviderNotes | null;
}

/** Set apart for a day: long enough for an operator to see it, and a repaired provider comes back by itself. */
const APART_MS = 86_400_000;
/** A dispute counts this long after it was last seen: one that nobody can decide any more must not stop the sales. */
const DISPUTED_MS = 60_000;
/** Disputes that are asked again. A provider that lies about everything is caught by the first. */
const MOST_OPEN = 20;
const TEXT_LENGTH = 500;

/** Opens the trust in one chain's providers. `onContradiction` is called whenever two contradict the one of a host. */
export function createTrust(clock: Clock, log: Log, onContradiction?: (host: string) => void): Trust {
  const state: State = { clock, log, held: [], unsaved: new Set(), open: new Map(), kept: null };
  return {
    isApart: (host) => state.held.some((note) => note.host === host && note.kind === 'apart' && holds(state, note)),
    notes: () => state.held.filter((note) => holds(state, note)),
    setApart(question, liar, others) {
      onContradiction?.(liar.host);
      hold(state, noteOf(clock, 'apart', question, liar, `others: ${others.says}`), SET_APART);
    },
    dispute(question, said, again) {
      const name = nameOf(question);
      if (state.open.has(name) || state.open.size < MOST_OPEN) state.open.set(name, again);
      for (const one of said) hold(state, noteOf(clock, 'disputed', question, one, wordsOf(said)), DISPUTED);
    },
    agree: (question) => agree(state, nameOf(question)),
    keepIn(notes) {
      state.kept = notes;
    },
    async refresh() {
      await readKept(state);
      await Promise.allSettled([...state.open.values()].map((again) => again()));
    },
  };
}

const SET_APART = 'ALERT: two RPC providers contradict this one about a block; it is set apart for a day';
const DISPUTED = 'ALERT: RPC providers contradict each other and no third decides; they confirm no payment meanwhile';

const holds = ({ clock }: State, { untilMs }: ProviderNote): boolean => untilMs > clock.nowMs();

async function readKept(state: State): Promise<void> {
  const { kept, clock, unsaved, open } = state;
  if (!kept) return;
  await Promise.all([...unsaved].map((note) => save(state, note)));
  const listed = await kept.list(clock.nowMs()).catch(() => null);
  if (listed === null) return;
  state.held = [...listed, ...unsaved];
  // The operator has ended it, or it was not seen again in time.
  for (const question of open.keys())
    if (!state.held.some((note) => note.question === question && holds(state, note))) open.delete(question);
}

/** Adds a note, or lets one hold longer that is known. Set apart is a provider for a day from the first time on. */
function hold(state: State, note: ProviderNote, message: string): void {
  const { host, kind, question, said, others } = note;
  const isSame = (known: ProviderNote) => known.host === host && known.kind === kind && known.question === question;
  const known = state.held.find((one) => isSame(one) && holds(state, one));
  if (known && kind === 'apart') return;
  if (!known) state.log.error({ provider: host, question, said, others }, message);
  state.held = [...state.held.filter((one) => holds(state, one) && !isSame(one)), note];
  for (const one of state.unsaved) if (isSame(one)) state.unsaved.delete(one);
  state.unsaved.add(note);
  void save(state, note);
}

/** Stores a note. One that could not be stored holds in this process, and is stored at the next `refresh`. */
async function save({ kept, unsaved, log }: State, note: ProviderNote): Promise<void> {
  try {
    await kept?.put(note);
    if (kept) unsaved.delete(note);
  } catch (err) {
    log.warn({ err }, 'what is known of the RPC providers was not stored');
  }
}

function agree(state: State, question: string): void {
  const isEnded = (note: ProviderNote) => note.kind === 'disputed' && note.question === question;
  const { kept, open, log } = state;
  if (!open.delete(question) && !state.held.some(isEnded)) return;
  state.held = state.held.filter((note) => !isEnded(note));
  for (const note of state.unsaved) if (isEnded(note)) state.unsaved.delete(note);
  log.info({ question }, 'the RPC providers agree again');
  kept?.agree(question).catch((err: unknown) => log.warn({ err }, 'the end of a dispute was not stored'));
}

function noteOf(clock: Clock, kind: ProviderNote['kind'], question: string, said: Said, others: string): ProviderNote {
  const sinceMs = clock.nowMs();
  return {
    host: said.host,
    kind,
    question: nameOf(question),
    said: cut(said.says),
    others: cut(others),
    sinceMs,
    untilMs: sinceMs + (kind === 'apart' ? APART_MS : DISPUTED_MS),
  };
}

function wordsOf(said: readonly Said[]): string {
  return said.map(({ host, about, says }) => `${host} says ${says.slice(0, 100)} of block ${about}`).join('; ');
}

/** A question by its text. A long one ends with a hash of the whole, because many share their beginning. */
function nameOf(question: string): string {
  if (question.length <= TEXT_LENGTH) return question;
  const digest = hash('sha256', question).slice(0, 16);
  return `${question.slice(0, TEXT_LENGTH - 17)}#${digest}`;
}

function cut(text: string): string {
  return text.length <= TEXT_LENGTH ? text : `${text.slice(0, TEXT_LENGTH - 1)}…`;
}
