import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { ask } from './ask.ts';
import { claimedPayment, type Requirement, signedPayment } from './payments.ts';

// The flood itself, in a thread of its own: an open loop, that is, requests go out at their rate whatever comes back.

/** What a flood presents. */
export type FloodKind = 'junk' | 'empty' | 'contracts' | 'gateway' | 'offers';

/** What the thread is given. */
export interface LoadOptions {
  readonly kind: FloodKind;
  readonly origin: string;
  readonly path: string;
  /** The clients, which take turns. */
  readonly addresses: readonly string[];
  /** Of all clients together. */
  readonly perSecond: number;
  /** What the payments are made out to; null where nothing is paid. */
  readonly requirement: Requirement | null;
  /** Contract payers, used one after another; empty for other kinds. */
  readonly wallets: readonly string[];
}

/** What a flood did and met. */
export interface LoadReport {
  readonly sent: number;
  /** Not sent, because too many were under way. */
  readonly skipped: number;
  /** Answers by status and code. */
  readonly answers: Readonly<Record<string, number>>;
}

/** So many seconds of payments are signed before the clock starts. */
const PREPARED_SECONDS = 60;
const TICK_MS = 5;
const TIMEOUT_MS = 15_000;
/** Far below the open files that a process may have. */
const MOST_UNDER_WAY = 4000;

const options: LoadOptions = workerData;
const { kind, origin, path, addresses, perSecond, requirement, wallets } = options;
const agent = new Agent({ keepAlive: true });
const answers: Record<string, number> = {};
let sent = 0;
let skipped = 0;
let underWay = 0;

function payment(index: number): string {
  if (!requirement) return '';
  if (kind === 'junk') return claimedPayment(requirement, randomBytes(20));
  if (kind !== 'contracts') return signedPayment(requirement, randomBytes(32));
  return claimedPayment(requirement, hexToBytes(wallets[index % wallets.length] ?? ''));
}

/** Every unpaid offer runs a handler: of these in turns one reads the chain, for another account each time, and one reads what was collected. */
function offerTarget(index: number): string {
  if (index % 2 === 0) return `${path}/rpc/health`;
  return `${path}/chain/wallet?address=0x${randomBytes(20).toString('hex')}`;
}

async function present(index: number, prepared: string | undefined): Promise<void> {
  if (underWay >= MOST_UNDER_WAY) {
    skipped += 1;
    return;
  }
  underWay += 1;
  const header = prepared ?? payment(index);
  const headers: Record<string, string> = header === '' ? {} : { 'payment-signature': header };
  const from = addresses[index % addresses.length] ?? '';
  const target = kind === 'offers' ? offerTarget(index) : path;
  const { status, code } = await ask({ origin, path: target, from, headers, agent, timeoutMs: TIMEOUT_MS });
  underWay -= 1;
  const met = status === 0 ? code : `${status} ${code}`.trim();
  answers[met] = (answers[met] ?? 0) + 1;
}

function flow(prepared: readonly string[]): void {
  const started = performance.now();
  setInterval(() => {
    const due = Math.floor(((performance.now() - started) * perSecond) / 1000);
    for (; sent < due; sent++) void present(sent, prepared[sent]);
  }, TICK_MS);
}

const prepared = Array.from({ length: Math.ceil(perSecond * PREPARED_SECONDS) }, (_, index) => payment(index));
parentPort?.on('message', (word: 'go' | 'report') => {
  if (word === 'go') flow(prepared);
  else parentPort?.postMessage({ sent: sent - skipped, skipped, answers } satisfies LoadReport);
});
parentPort?.postMessage('ready');
