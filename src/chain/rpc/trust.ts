import { hash } from 'node:crypto';
import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Common } from '../../lib/common.ts';
import { createLoop, createSingleFlight } from '../../lib/tasks.ts';
import type { Ask } from './failover.ts';
import type { PooledProvider, ProviderPool } from './providers.ts';
import { index, quantity, type RpcOptions, readOutcome } from './wire.ts';

// Which providers are believed, and the head that two of them say. All are believed until two contradict each other
// about one block. One that two others contradict is set apart for a day and asked for nothing. Without a third neither
// counts for a sale, and the question is asked again. The ledger has notes, which `ledger -- trust HOST` deletes.

export interface Trust {
  isApart(host: string): boolean;
  notes(): readonly ProviderNote[];
  setApart(question: string, liar: Said, others: Said): void;
  /** Providers differ and no third decides. Each `refresh` calls `again` until a majority decides. */
  dispute(question: string, said: readonly Said[], again: () => Promise<unknown>): void;
  agree(question: string): void;
  /** Keeps the notes there from now on. */
  keepIn(notes: ProviderNotes): void;
  /** Reads what others noted and the operator ended, then asks disputes again. A failure leaves what is known. */
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
  /** The call, its answer and the other's, cut to TEXT_LENGTH. */
  readonly question: string;
  readonly said: string;
  readonly others: string;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** Where notes are kept for all instances and over restarts. */
export interface ProviderNotes {
  /** Those that still hold, oldest first. */
  list(nowMs: number): Promise<readonly ProviderNote[]>;
  put(note: ProviderNote): Promise<void>;
  agree(question: string): Promise<void>;
}

interface State extends Common {
  held: readonly ProviderNote[];
  /** Not stored yet: a list of what is stored lacks them. */
  readonly unsaved: Set<ProviderNote>;
  /** How each open dispute is asked again. */
  readonly open: Map<string, () => Promise<unknown>>;
  kept: ProviderNotes | null;
}

/** Long enough for an operator to see it; a repaired provider comes back by itself. */
const APART_MS = 86_400_000;
/** After it was last seen: a dispute that nobody can decide any more must not stop the sales. */
const DISPUTED_MS = 60_000;
/** Disputes that are asked again. The first catches who lies about everything. */
const MOST_OPEN = 20;
const TEXT_LENGTH = 500;

/** `onContradiction` is called whenever two contradict the one of a host. */
export function createTrust({ clock, log }: Common, onContradiction?: (host: string) => void): Trust {
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

/** Adds a note, or lets a dispute's hold longer. A provider is set apart for a day from the first time on. */
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

/** A note that could not be stored holds in this process, and is stored at the next `refresh`. */
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

/** A long question ends with a hash of the whole, because many share their beginning. */
function nameOf(question: string): string {
  if (question.length <= TEXT_LENGTH) return question;
  const digest = hash('sha256', question).slice(0, 16);
  return `${question.slice(0, TEXT_LENGTH - 17)}#${digest}`;
}

function cut(text: string): string {
  return text.length <= TEXT_LENGTH ? text : `${text.slice(0, TEXT_LENGTH - 1)}…`;
}

// The head of the chain as two providers say it:
// 1. each is asked every few seconds, and whenever the head is asked for (`askRound`);
// 2. the agreed head is the second highest, so that no single provider moves it (`agreedOf`);
// 3. one that is far from it is asked last until it agrees (`holdBack`).

export interface Agreed {
  /** How many hosts are configured. With one, its word alone counts. */
  readonly witnesses: number;
  /** The highest block that two have reached; a lone one's newest. Rejects with UpstreamFailed without one. */
  head(options?: RpcOptions): Promise<number>;
  /** As it was read last. Null where it is not known, and with a lone provider. */
  lastHead(): number | null;
  /** Why no two can confirm a payment now, for operators and buyers. Null when they can, and with a lone provider. */
  whyUnconfirmed(): string | null;
  providers(): readonly ProviderStatus[];
}

export interface ProviderStatus {
  readonly host: string;
  /** Its head less the agreed one. Null while either is unknown. */
  readonly aheadBlocks: number | null;
  readonly isPresent: boolean;
  readonly isFar: boolean;
  readonly isApart: boolean;
}

interface AgreedHead extends Agreed {
  /** Resolves after a first round. Never rejects. */
  start(): Promise<void>;
  stop(): void;
}

interface Seen {
  readonly number: number;
  readonly atMs: number;
}

interface Watched extends Common {
  readonly pool: ProviderPool;
  readonly trust: Trust;
  readonly hosts: ReadonlyMap<string, readonly PooledProvider[]>;
  readonly heads: Map<string, Seen>;
  readonly signal: AbortSignal;
  /** The highest that was ever agreed on. */
  highest: number;
}

/** Between two rounds at rest: a quarter of a request a second for each provider. */
const ROUND_MS = 4000;
/** After its last answer a provider counts as present for so long: two rounds may fail. */
const PRESENT_MS = 10_000;
/** A head is old after this time: a round was left out. */
const OLD_MS = 5000;
/** A head so many blocks from the agreed one is far: ten seconds on Arc. */
const FAR_BLOCKS = 20;
/** The wait for slower providers once two have answered. */
const GRACE_MS = 100;
/** How far a lone provider's newest block may be ahead of our clock, which an operator may have set wrong. */
const AHEAD_SECONDS = 900n;

/** The agreed head never falls far, and no single provider moves it. */
export function createAgreedHead({ clock, log }: Common, pool: ProviderPool, trust: Trust, ask: Ask): AgreedHead {
  const hosts = Map.groupBy(pool.entries, ({ provider }) => provider.host);
  const loop = createLoop(clock, step, ROUND_MS);
  const watched: Watched = { clock, log, pool, trust, hosts, heads: new Map(), signal: loop.signal, highest: 0 };
  const isLone = hosts.size < 2;
  const rounds = createSingleFlight<void>();
  const round = () => rounds('head', undefined, () => askRound(watched));

  async function step(): Promise<number> {
    await Promise.all([round(), trust.refresh()]);
    return ROUND_MS;
  }

  return {
    witnesses: hosts.size,
    async head(options = {}) {
      if (isLone) return readLone(clock, ask, options);
      await round();
      const head = agreedOf(watched);
      if (head === null) throw new UpstreamFailed('chain', 'no two providers say how far the chain is');
      return head;
    },
    lastHead: () => (isLone ? null : agreedOf(watched)),
    whyUnconfirmed: () => (isLone ? null : whyUnconfirmed(watched)),
    providers: () => [...hosts.keys()].map((host) => statusOf(watched, host)),
    async start() {
      if (isLone) return;
      await Promise.all([round(), trust.refresh()]);
      loop.start();
    },
    stop: () => void loop.stop(new Error('the chain client closes')),
  };
}

/** Waits for the quick hosts. One with an old head is asked whatever its allowance: cheap reads never starve it. */
async function askRound(watched: Watched): Promise<void> {
  const { hosts, heads, pool, clock, signal } = watched;
  const startedMs = clock.nowMs();
  const isOld = (host: string) => clock.nowMs() - (heads.get(host)?.atMs ?? 0) > OLD_MS;
  const asked = [...hosts.keys()].flatMap((host) => {
    const entries = pool.inOrder().filter(({ provider }) => provider.host === host);
    const ready = isOld(host) ? entries : entries.filter(({ allowance }) => allowance.free() >= 1);
    return ready.length === 0 ? [] : [ready];
  });
  const enough = Promise.withResolvers<void>();
  let answered = 0;
  const asking = asked.map(async (entries) => {
    await askHead(watched, entries);
    answered += 1;
    if (answered === 2) enough.resolve();
  });
  const grace = enough.promise.then(() => clock.sleep(GRACE_MS, signal)).catch(() => undefined);
  await Promise.race([Promise.all(asking), grace]);
  holdBack(watched, startedMs);
}

async function askHead({ pool, heads, clock, signal }: Watched, entries: readonly PooledProvider[]): Promise<void> {
  for (const entry of entries) {
    try {
      const [answer] = await pool.call(entry, [{ method: 'eth_blockNumber', params: [] }], signal);
      const number = answer && 'result' in answer ? index.safeParse(answer.result) : null;
      if (!number?.success) continue;
      heads.set(entry.provider.host, { number: number.data, atMs: clock.nowMs() });
      return;
    } catch {
      // The pool has noted the failure.
    }
  }
}

/** Compares the heads of one round: an older head says nothing of how far a provider is now. */
function holdBack(watched: Watched, sinceMs: number): void {
  const { hosts, log } = watched;
  const head = agreedOf(watched, sinceMs);
  if (head === null) return;
  for (const [host, entries] of hosts) {
    const own = headOf(watched, host, sinceMs);
    if (own === null) continue;
    const isOff = Math.abs(own - head) > FAR_BLOCKS;
    const [first] = entries;
    if (isOff !== isFar(watched, host))
      log.warn({ provider: first?.provider.origin, head: own, agreed: head }, isOff ? FAR : NEAR);
    for (const entry of entries) entry.isOffHead = isOff;
  }
}

const FAR = 'chain provider held back: its head is far from the one that two others have reached';
const NEAR = 'chain provider has the head of the others again';

/** The second highest head of those not set apart. Null without two, and where it is far below an earlier one. */
function agreedOf(watched: Watched, sinceMs?: number): number | null {
  const known = [...watched.hosts.keys()].flatMap((host) =>
    watched.trust.isApart(host) ? [] : (headOf(watched, host, sinceMs) ?? []),
  );
  const second = known.sort((one, other) => other - one)[1];
  // Of two providers one could take the head back, and both would then truly show a state that is gone.
  if (second === undefined || second < watched.highest - FAR_BLOCKS) return null;
  watched.highest = Math.max(watched.highest, second);
  return second;
}

function headOf({ heads, clock }: Watched, host: string, sinceMs = clock.nowMs() - PRESENT_MS): number | null {
  const head = heads.get(host);
  return head && head.atMs >= sinceMs ? head.number : null;
}

const isPresent = ({ hosts, clock }: Watched, host: string): boolean =>
  (hosts.get(host) ?? []).some(({ answeredMs }) => clock.nowMs() - answeredMs <= PRESENT_MS);

const isFar = ({ hosts }: Watched, host: string): boolean => (hosts.get(host) ?? []).some(({ isOffHead }) => isOffHead);

function statusOf(watched: Watched, host: string): ProviderStatus {
  const [own, head] = [headOf(watched, host), agreedOf(watched)];
  return {
    host,
    aheadBlocks: own === null || head === null ? null : own - head,
    isPresent: isPresent(watched, host),
    isFar: isFar(watched, host),
    isApart: watched.trust.isApart(host),
  };
}

function whyUnconfirmed(watched: Watched): string | null {
  const { hosts, trust } = watched;
  const disputed = trust.notes().filter(({ kind }) => kind === 'disputed');
  const counts = (host: string): boolean =>
    isPresent(watched, host) &&
    !isFar(watched, host) &&
    !trust.isApart(host) &&
    !disputed.some((note) => note.host === host);
  const here = [...hosts.keys()].filter(counts).length;
  if (here >= 2) return null;
  const words = [...new Set(disputed.map(({ others }) => others))].join('; ');
  if (words !== '') return `RPC providers contradict each other: ${words}`;
  return `${here} of ${hosts.size} RPC providers can confirm a payment, 2 must`;
}

const newest = z.object({ number: index, timestamp: quantity });

async function readLone(clock: Clock, ask: Ask, options: RpcOptions): Promise<number> {
  const [outcome] = await ask([{ method: 'eth_getBlockByNumber', params: ['latest', false] }], options);
  const { number, timestamp } = readOutcome(outcome, newest, 'newest block');
  if (timestamp > BigInt(Math.floor(clock.nowMs() / 1000)) + AHEAD_SECONDS)
    throw new UpstreamFailed('chain', 'the newest block is ahead of our clock');
  return number;
}
