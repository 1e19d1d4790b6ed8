import { readAtBlock } from '../../chain/named-block.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import { isChainBusy } from '../../chain/rpc/failover.ts';
import { index, type RpcCall, RpcError, type RpcOutcome, toQuantity } from '../../chain/rpc/wire.ts';
import { UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Found } from '../settler.ts';
import { type ChainCheck, settleCall, type TokenWatch } from '../usdc/checks.ts';
import { type Evidence, receiptStatements } from '../usdc/evidence.ts';
import { isRevert } from '../usdc/payer-reads.ts';
import { MULTICALL3 } from '../usdc/token.ts';
import type { Fees } from './gas.ts';
import { refusalOf, throughOf } from './sending.ts';
import type { Answered, Ask, Plan, Reading, Timer, Trial } from './state.ts';
import { batchAnswer, batchCalldata, type Flight, type Job, newest, type OperationJob } from './transactions.ts';

// Carries out the machine's effects, and decides nothing. No provider alone keeps us from settling or ends anything:
// counts and receipts are what two say, and what one refuses goes to each host. A lone configured one is believed.

/** Until busy providers are asked again. A try itself waits seconds for them (`chain/rpc/wire.ts`). */
const BUSY_MS = 100;
const MOST_TRIES = 5;
/** Milliseconds: three blocks on Arc. A receipt that is this late is asked for at the next provider. */
const NEXT_POLLS_MS = 1500;

/** Once `signal` aborts, waits end and nothing more is asked. */
export interface EffectsOptions extends TryOutOptions {
  readonly check: Pick<ChainCheck, 'read' | 'balanceAt'>;
  readonly evidence: Pick<Evidence, 'lookup'>;
  readonly token: Pick<TokenWatch, 'check'>;
  readonly fees: Pick<Fees, 'ready' | 'refresh'>;
  readonly clock: Clock;
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
}

export function createEffects(options: EffectsOptions) {
  const { chain, token, fees, clock, signal } = options;
  const waits = new Map<Timer['name'], AbortController>();

  async function wait(ms: number, { name }: Timer): Promise<void> {
    if (ms === 0) return new Promise((next) => setImmediate(next));
    const woken = new AbortController();
    waits.set(name, woken);
    await clock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => {});
  }

  return {
    async ask(effect: Ask): Promise<Answered> {
      const { kind } = effect;
      switch (kind) {
        case 'wait':
          await wait(effect.ms, effect.timer);
          return { kind, effect, answer: null };
        case 'countTransactions':
          return { kind, effect, answer: await countTransactions(options) };
        case 'readFees':
          await (effect.for === 'round' ? fees.ready() : fees.refresh());
          return { kind, effect, answer: null };
        case 'tryOut':
          return { kind, effect, answer: await tryOut(options, effect.plan) };
        case 'tryOperation':
          return { kind, effect, answer: await tryOperation(options, effect.job, effect.gasPrice) };
        case 'lookUpOperation':
          return { kind, effect, answer: await effect.job.operation.lookUp(signal).catch(() => 'unreadable' as const) };
        case 'note':
          return { kind, effect, answer: await note(options, effect.flights) };
        case 'send':
          return { kind, effect, answer: await send(options, effect.raws) };
        case 'fetchReceipts':
          return { kind, effect, answer: await fetchReceipts(options, effect) };
        case 'readPayers':
          return { kind, effect, answer: await readPayers(options, effect.jobs) };
        case 'lookUp':
          return { kind, effect, answer: await lookUp(options, effect.job, effect.atBlock) };
        case 'readBalance':
          return { kind, effect, answer: await readBalance(options, effect.job, effect.atBlock) };
        case 'tryToken':
          return { kind, effect, answer: await token.check() };
      }
    },
    wake: (name: Timer['name']): void => waits.get(name)?.abort(),
    /** Sends to every provider, waits for none, and ignores the answers. */
    resendEverywhere: (raws: readonly string[]): void => void chain.everywhere(sendings(raws), { signal }),
  };
}

export type Effects = ReturnType<typeof createEffects>;

/** The count that two providers have reached: one's too high count would leave a gap below every later nonce. */
async function countTransactions({ chain, relayer, signal }: EffectsOptions): Promise<number> {
  const asked = [{ method: 'eth_getTransactionCount', params: [relayer, 'latest'] }];
  const answers = await chain.each(asked, { signal, rank: 'settle' });
  const counts = answers.flatMap(([outcome]) => {
    const count = outcome && 'result' in outcome ? index.safeParse(outcome.result) : null;
    return count?.success ? [count.data] : [];
  });
  const [highest, second] = counts.sort((one, other) => other - one);
  const count = chain.agreed.witnesses < 2 ? highest : second;
  if (count === undefined) throw new UpstreamFailed('chain', 'the transaction count is not known');
  return count;
}

/** Notes the transactions where their payments or their operation are. */
async function note({ noteBroadcast }: EffectsOptions, flights: readonly Flight[]): Promise<ReadonlySet<string>> {
  const entries = entriesOf(flights);
  const waiting: string[] = [];
  for (const { hash, operationJob } of flights.map(newest))
    if (operationJob && (await operationJob.operation.note(hexToBytes(hash)))) waiting.push(operationJob.operation.id);
  const hasOperation = flights.some((flight) => newest(flight).operationJob !== null);
  if (!hasOperation) return noteBroadcast(entries);
  return new Set([...waiting, ...(entries.length > 0 ? await noteBroadcast(entries) : [])]);
}

function entriesOf(flights: readonly Flight[]): { id: string; transaction: Uint8Array }[] {
  return flights.map(newest).flatMap(({ hash, jobs }) => {
    const transaction = hexToBytes(hash);
    return jobs.map(({ intent }) => ({ id: intent.id, transaction }));
  });
}

/** Busy providers have accepted nothing, so the batch is sent again after BUSY_MS. */
async function send(options: EffectsOptions, raws: readonly string[]): Promise<RpcOutcome[]> {
  const { chain, clock, signal } = options;
  for (let tries = 1; ; tries++) {
    try {
      return await sendRefusedElsewhere(options, raws, await chain.batch(sendings(raws), { signal }));
    } catch (error) {
      if (!isChainBusy(error) || tries === MOST_TRIES) throw error;
      await clock.sleep(BUSY_MS, signal).catch(() => {});
    }
  }
}

/** Transactions in one request to a provider. */
const MOST_AT_ONCE = 100;

/** What one refuses goes to each host; what one of them takes is sent. Else, and of a lone one, the refusal stands. */
async function sendRefusedElsewhere(
  { chain, signal }: EffectsOptions,
  raws: readonly string[],
  outcomes: readonly RpcOutcome[],
): Promise<RpcOutcome[]> {
  const sent = [...outcomes];
  const refused = raws.flatMap((raw, at) => (refusalOf(outcomes[at]) === null ? [] : [{ raw, at }]));
  if (chain.agreed.witnesses < 2) return sent;
  for (let start = 0; start < refused.length; start += MOST_AT_ONCE) {
    const some = refused.slice(start, start + MOST_AT_ONCE);
    const heard = await chain.each(sendings(some.map(({ raw }) => raw)), { signal }).catch(() => []);
    for (const [index, { at }] of some.entries()) {
      const taken = heard.map((answers) => answers[index]).find((one) => one && refusalOf(one) === null);
      if (taken) sent[at] = taken;
    }
  }
  return sent;
}

function sendings(raws: readonly string[]): RpcCall[] {
  return raws.map((raw) => ({ method: 'eth_sendRawTransaction', params: [raw] }));
}

/** Receipts count by two providers. While nothing is mined one is asked, and the next one once the oldest is late. */
async function fetchReceipts(
  { chain, clock, signal }: EffectsOptions,
  { sent, for: what }: Extract<Ask, { kind: 'fetchReceipts' }>,
): Promise<RpcOutcome[]> {
  const calls = sent.map(({ transaction: { hash } }) => ({ method: 'eth_getTransactionReceipt', params: [hash] }));
  const oldestMs = Math.min(...sent.map(({ flight }) => flight.sentMs ?? clock.nowMs()));
  const turn = Math.max(0, Math.floor((clock.nowMs() - oldestMs) / NEXT_POLLS_MS));
  return chain.batch(calls, { signal, statements: receiptStatements, isPoll: what === 'look', turn });
}

function readPayers({ check, signal }: EffectsOptions, jobs: readonly Job[]): Promise<(Reading | null)[]> {
  return Promise.all(jobs.map(({ intent }) => check.read(intent.authorization, signal).catch(() => null)));
}

async function lookUp({ evidence }: EffectsOptions, { intent }: Job, atBlock: number | null): Promise<Found> {
  const at = atBlock === null ? {} : { atBlock };
  return evidence.lookup(intent.authorization, intent.fromBlock, at).catch(() => ({ kind: 'unknown' }));
}

async function readBalance({ check, signal }: EffectsOptions, { intent }: Job, block: number): Promise<bigint | null> {
  return check.balanceAt(intent.authorization.from, block, signal).catch(() => null);
}

export interface TryOutOptions {
  readonly chain: ChainClient;
  readonly check: Pick<ChainCheck, 'read'>;
  readonly usdc: `0x${string}`;
  readonly relayer: `0x${string}`;
  readonly signal: AbortSignal;
}

/** Providers that must refuse a payment, where two are configured: one alone could keep its authorization. */
const ENOUGH = 2;
/** Error code of a revert at geth and reth. */
const REVERT_CODE = 3;

/** Reads payers and simulates groups at once. Rejects when no payer could be read: the chain does not answer. */
export async function tryOut(options: TryOutOptions, { free, trialGroups, limits }: Plan): Promise<Trial> {
  const calls = trialGroups.map((group) => simulation(options, group, limits));
  // A node that answers reads may refuse a simulation of this size.
  const noResult = (): RpcOutcome[] => [];
  const simulating = options.chain.batch(calls, { signal: options.signal }).catch(noResult);
  const [readings, simulated] = await Promise.all([readSome(options, free), simulating]);
  if (options.chain.agreed.witnesses < ENOUGH) return { readings, simulated };
  return askElsewhere(options, { trialGroups, calls }, { readings, simulated });
}

/**
 * Asks each host about groups not accepted whole. Two refuse: refused. Another accepts: accepted. One alone refuses:
 * the payer counts as unread, is tried again and then sent, because a mined transaction shows its end.
 */
async function askElsewhere(
  { chain, signal }: TryOutOptions,
  { trialGroups, calls }: Pick<Plan, 'trialGroups'> & { readonly calls: readonly RpcCall[] },
  { readings, simulated }: Trial,
): Promise<Trial> {
  const asked = trialGroups.flatMap((group, at) => {
    const [call, through] = [calls[at], throughOf(simulated[at], group.length)];
    return call && !through?.every(Boolean) ? [{ at, group, call, through }] : [];
  });
  const [known, outcomes] = [new Map(readings), [...simulated]];
  for (let start = 0; start < asked.length; start += MOST_AT_ONCE) {
    const some = asked.slice(start, start + MOST_AT_ONCE);
    const questions = some.map(({ call }) => call);
    const heard = await chain.each(questions, { signal }).catch(() => []);
    for (const [index, { at, group, through }] of some.entries()) {
      const said = heard.map((answers) => throughOf(answers[index], group.length)).filter((one) => one !== null);
      if (said.length === 0 && through === null) continue;
      const judged = group.map((job, place) => {
        if (through?.[place]) return true;
        if (said.filter((one) => one[place] === false).length >= ENOUGH) return false;
        const isAccepted = said.some((one) => one[place]);
        if (!isAccepted && !known.get(job)?.used) known.delete(job);
        return isAccepted;
      });
      outcomes[at] = outcomeOf(judged);
    }
  }
  return { readings: known, simulated: outcomes };
}

function outcomeOf(judged: readonly boolean[]): RpcOutcome {
  if (judged.length > 1) return { result: batchAnswer(judged) };
  return judged[0] ? { result: '0x' } : { error: new RpcError(REVERT_CODE, 'execution reverted') };
}

/** A batch gets more gas than when it is sent. If it still runs out, one of its payers used it up. */
function simulation(
  { usdc, relayer }: TryOutOptions,
  group: readonly Job[],
  { gas, gasPrice }: Plan['limits'],
): RpcCall {
  const calls = group.map(({ intent }) => settleCall(usdc, intent));
  const [only] = calls;
  const call =
    only && group.length === 1
      ? { to: only.to, data: only.data, gas: toQuantity(only.gas), gasPrice: toQuantity(gasPrice) }
      : { to: MULTICALL3, data: batchCalldata(calls), gas: toQuantity(gas) };
  return { method: 'eth_call', params: [{ from: relayer, ...call }, 'latest'] };
}

/**
 * With the transaction's gas and price, at a node that has its least block. A revert ends an operation that no node has
 * seen, so two must say it where two are configured. Rejects without an answer, the block, or a second one.
 */
export async function tryOperation(
  { chain, relayer, signal }: TryOutOptions,
  { operation: { to, data, gas, leastBlock } }: OperationJob,
  gasPrice: bigint,
): Promise<RpcOutcome> {
  const call = { to: bytesToHex(to), data: bytesToHex(data), gas: toQuantity(gas), gasPrice: toQuantity(gasPrice) };
  const callsAt = (tag: string): RpcCall[] => [{ method: 'eth_call', params: [{ from: relayer, ...call }, tag] }];
  const block = leastBlock === undefined ? null : Math.max(leastBlock, await chain.agreed.head({ signal }));
  const [outcome] =
    block === null
      ? await chain.batch(callsAt('latest'), { signal })
      : ((await readAtBlock(chain, block, callsAt, { signal, isConfirmed: false }))?.outcomes ?? []);
  if (!outcome) throw new Error('a simulation without an answer');
  if (!('error' in outcome) || !isRevert(outcome.error) || chain.agreed.witnesses < 2) return outcome;
  const answers = (await chain.each(callsAt(block === null ? 'latest' : toQuantity(block)), { signal })).flat();
  const refusals = answers.filter((one) => 'error' in one && isRevert(one.error));
  const taken = answers.find((one) => 'result' in one);
  if (taken && refusals.length < 2) return taken;
  if (refusals.length < 2) throw new Error('no two providers say that an operation reverts');
  return outcome;
}

async function readSome({ check, signal }: TryOutOptions, jobs: readonly Job[]): Promise<Map<Job, Reading>> {
  const outcomes = await Promise.allSettled(jobs.map(({ intent }) => check.read(intent.authorization, signal)));
  const readings = new Map<Job, Reading>();
  for (const [at, job] of jobs.entries()) {
    const outcome = outcomes[at];
    if (outcome?.status === 'fulfilled') readings.set(job, outcome.value);
  }
  const [first] = outcomes;
  if (readings.size === 0 && first?.status === 'rejected') throw first.reason;
  return readings;
}
