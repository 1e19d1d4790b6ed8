import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../../src/catalogue/endpoint.ts';
import type { ChainClient } from '../../../src/chain/rpc/client.ts';
import { loadConfig } from '../../../src/config.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { AppError } from '../../../src/errors.ts';
import { asAppError } from '../../../src/http/problems.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { channelRequirement, openChannels } from '../../../src/payment/channels/rail.ts';
import { SETTLEMENT_BYTES } from '../../../src/payment/channels/scheme.ts';
import { createLedger } from '../../../src/payment/ledger.ts';
import { createFailures, createUnknownPayments } from '../../../src/payment/limits.ts';
import type { Credential } from '../../../src/payment/protocol.ts';
import { identifierIn } from '../../../src/payment/protocols/x402/http.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import type { Wallet } from '../../../src/payment/relayer/transactions.ts';
import { createSales } from '../../../src/payment/sale.ts';
import type { Intent } from '../../../src/payment/settler.ts';
import { createContractBudget } from '../../../src/payment/usdc/checks.ts';
import type { Payment } from '../../../src/store/ports/payments.ts';
import { NETWORK } from '../ledger/channel-rows.ts';
import { memory } from '../ledger/ledger-adapters.ts';
import type { ManualClock } from '../manual-clock.ts';
import { runningByPurpose, usdcCallOf } from '../payment/call.ts';
import { plainRequirement } from '../usdc/payments.ts';
import { BUYER, openChannelLedger, type UnitChannel } from './channel-ledger.ts';
import { channelMessage, type MessageChanges } from './channel-messages.ts';
import { AUTHORIZER_KEY, CHANNEL_TERMS } from './channel-payment.ts';
import { checkOf, createScript, evidenceOf, relayerOf, type Script, settlementOf, statusOf } from './channel-script.ts';
import { stepsOf } from './ledger-steps.ts';

// The rail of channels, opened over a real ledger in memory, the contract's stand-in, and a world that the script
// describes. This file alone knows how a call is sold. Tests speak of calls and messages.

/** The price of a call here, in base units. Charges are claimed from this sum on, or after a second. */
export const PRICE = 500n;
export const SETTLE_WAIT_MS = 1000;
const SELLER = bytesToHex(CHANNEL_TERMS.receiver);
const FAILURES = { payer: 3, client: 8, clientSettlements: 3 };
const config = loadConfig({
  NETWORK: 'arc',
  SELLER_ADDRESS: SELLER,
  RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
  CHANNELS: 'on',
  CHANNELS_AUTHORIZER_KEY: bytesToHex(AUTHORIZER_KEY),
  CHANNELS_MIN_DEPOSIT_USDC: '0.001',
  CHANNELS_CLAIM_FROM_USDC: '0.0005',
  CHANNELS_CLAIM_AFTER_SECONDS: '1',
  CHANNELS_PAYER_DEPOSITS_PER_DAY: '2',
  SETTLE_WAIT_MS: String(SETTLE_WAIT_MS),
});
const RUNNING = runningByPurpose<Sources>(60_000);
const entry = channelRequirement(config.rails.channels as NonNullable<typeof config.rails.channels>);

export interface Call {
  /** What is asked for; another tag is another request. A tag above 40 characters is a wrong parameter. */
  readonly tag?: string;
  readonly client?: string;
  /** By default the client's own. */
  readonly identity?: string;
  readonly price?: bigint;
  readonly isOff?: true;
  readonly signal?: AbortSignal;
  /** What happens while the endpoint runs with these sources. What it throws is the endpoint's error. */
  readonly run?: (sources: Sources) => Promise<unknown>;
}

type Bed = Awaited<ReturnType<typeof openChannelLedger>>;
interface Options {
  /** Another ledger and chain than new ones in memory. The test closes them. */
  readonly over?: { readonly bed: Bed; readonly chain: ChainClient };
  readonly storeBytes?: number;
  /** Open payments of one payer; 0 by default: no bound. */
  readonly maxOpen?: number;
  /** The relayer's key, where one is configured. */
  readonly wallet?: Wallet;
}

export async function openChannelSale({ over, storeBytes = 1_000_000, maxOpen = 0, wallet }: Options = {}) {
  const bed = over?.bed ?? (await openChannelLedger(memory));
  if (!over) onTestFinished(() => bed.close());
  const channel = await bed.open(10_000n);
  const script = createScript();
  const chain = over?.chain ?? chainOf(bed);
  const world = { bed, script, chain, storeBytes, maxOpen, wallet: wallet ?? null, runs: { count: 0 } };
  const first = await openSeller(world);
  const clockSeconds = () => Math.floor(bed.clock.nowMs() / 1000);

  /** A message of the channel, as a client presents it. */
  const message =
    (type: 'voucher' | 'deposit' | 'refund') =>
    (max: bigint, { of = channel, identifier, accepted, ...changes }: MessageOptions = {}) => {
      const validBefore = clockSeconds() + 600;
      return {
        protocol: 'x402',
        accepted: { ...requirementOf(PRICE), ...accepted },
        payload: channelMessage(type, of, max, { validBefore, ...changes }),
        identifier: () =>
          identifier === undefined ? null : identifierIn({ 'payment-identifier': { info: { id: identifier } } }),
      } satisfies Credential;
    };
  return {
    ...first,
    bed,
    script,
    channel,
    clock: bed.clock,
    runs: () => world.runs.count,
    voucher: message('voucher'),
    deposit: message('deposit'),
    refund: message('refund'),
    noted: () => bed.noted(channel.id),
    row: (max = PRICE) => bed.store.findSale(channel.id, max),
    /** Until this client must wait, by forged vouchers, which count for the client alone. */
    async failOften(client = BUYER): Promise<void> {
      const forged = message('voucher')(PRICE, { isVoucherForged: true });
      for (let time = 0; time < FAILURES.client; time++) await first.ask({ client }, forged);
      first.failed.length = 0;
    },
    /** How many requests wait for their turn in a channel. */
    waiting: () => bed.clock.pendingSleeps().filter((ms) => ms > 10_000).length,
    /** Another process that sells over the same ledger, and settles unless it is said not to. */
    another: (settles = true) => openSeller(world, settles),
    /** What the chain shows of a channel from now on, and the ledger knows. Reads are counted from here. */
    async see(state: Parameters<Bed['contract']['put']>[1], of = channel): Promise<void> {
      bed.contract.put(of.id, state);
      const [read] = await bed.reader.read([of.id]);
      if (read) await bed.store.note({ ...of.config, id: of.id, network: NETWORK }, read, bed.clock.nowMs());
      bed.contract.asked.length = 0;
    },
  };
}

export interface MessageOptions extends MessageChanges {
  readonly of?: UnitChannel;
  readonly identifier?: string | undefined;
  readonly accepted?: object;
}

const requirementOf = (price: bigint) => entry({ ...plainRequirement(SELLER), amount: String(price) });
/** The stand-in has no allowance: what it is asked may be asked at once. */
const chainOf = ({ contract }: Bed) =>
  ({ ...contract.chain, ready: async () => {}, requestsPerSecond: () => 100 }) as unknown as ChainClient;

interface World {
  readonly bed: Bed;
  readonly script: Script;
  readonly chain: ChainClient;
  readonly storeBytes: number;
  readonly maxOpen: number;
  readonly wallet: Wallet | null;
  readonly runs: { count: number };
}

/** One process that sells. `on` and `count` are for the steps of its ledger. */
async function openSeller(world: World, settles = true) {
  const { bed, script, chain, storeBytes, maxOpen, wallet, runs } = world;
  const { clock, log } = bed;
  const { stores, on, count } = stepsOf(bed.stores);
  const limits = { storeBytes, keepSeconds: 900, maxDeliveries: 5, maxOpen };
  const ledger = createLedger({ store: stores.payments, clock, bootId: 'boot', ...limits });
  const { failures, failed } = watchedFailures(clock);
  const settle = settlementOf(script, bed, ledger);
  const settling = {
    settle: ({ id, call }: Intent) => {
      script.settledBy.push(call ? bytesToHex(call.to) : 'the token');
      script.settledWith.push(call?.data);
      return settle(id);
    },
    resume: ({ id }: Payment) => settle(id),
  };
  const unknown = createUnknownPayments({ ledger, limits: { payer: 2, client: 3 }, clock });
  const network = config.network.caip2;
  const hurried = {
    ...clock,
    sleep: (ms: number, signal?: AbortSignal) => passed(clock, ms) ?? clock.sleep(ms, signal),
  };
  const rail = openChannels(
    {
      config,
      sales: createSales({ ledger, settling, failures, unknown, clock: hurried, network, log }),
      channels: stores.channels,
      balanceContracts: [SETTLEMENT_BYTES],
      chain,
      check: checkOf(script, bed),
      contracts: createContractBudget(clock),
      evidence: evidenceOf(script),
      wallet,
    },
    statusOf(script),
  );
  if (settles) rail.openSettler({ noteBroadcast: async () => new Set(), relayer: () => relayerOf(script, bed) });

  /** Sells a call for a message. */
  async function sell(call: Call, credential: Credential) {
    const { tag = 'a', client = BUYER, identity = client, price = PRICE, signal } = call;
    const plain = { ...plainRequirement(SELLER), amount: String(price) };
    const asking = { query: { tag }, client, identity, ...(signal && { signal }) };
    return rail.sell(usdcCallOf(endpointOf(call, runs), plain, { asking, running: RUNNING }), credential);
  }

  return {
    sell,
    /** How a sale ends, in a few words. */
    ask: (call: Call, credential: Credential) => outcomeOf(sell(call, credential)),
    /** Claims all charges, as the operator's command does. */
    claimAll: () => rail.claimAll(new AbortController().signal),
    on,
    count,
    failed,
  };
}

/** Milliseconds between two looks at an open refund. */
const POLL_MS = 100;

/** Reads wait for others to share their request, and refunds for their end. The test moves the clock for neither. */
function passed(clock: ManualClock, ms: number): Promise<void> | null {
  if (ms > POLL_MS) return null;
  return (ms === POLL_MS ? clock.advance(ms) : Promise.resolve()).then(() => new Promise((done) => setImmediate(done)));
}

function endpointOf({ price = PRICE, isOff, run = async () => {} }: Call, runs: { count: number }) {
  const endpoint: Endpoint<Sources> = defineEndpoint({
    path: '/test/call',
    access: 'paid',
    priceUsd: String(Number(price) / 1_000_000),
    label: 'Call',
    summary: 'Numbers its answers.',
    notFor: null,
    tags: '',
    ofChain: false,
    params: z.object({ tag: z.string().max(40) }),
    result: z.strictObject({ answer: z.string() }),
    example: { params: { tag: 'a' }, result: { answer: 'answer 1' } },
    run: async (_params, sources) => {
      const answer = `answer ${++runs.count}`;
      await run(sources);
      return { answer };
    },
  });
  return isOff ? { ...endpoint, isOff } : endpoint;
}

/** The real limits of failures, and what was counted: the client alone, or the payer and the client. */
function watchedFailures(clock: Clock) {
  const real = createFailures(FAILURES, clock);
  const failed: string[] = [];
  return {
    failed,
    failures: {
      ...real,
      noteUnproven: (client: string) => {
        failed.push(client);
        real.noteUnproven(client);
      },
      note: (payer: string, client: string) => {
        failed.push(`${payer} at ${client}`);
        real.note(payer, client);
      },
    },
  };
}

/** Such as `answer 1`, `402 channel_busy`, `503 settlement_unknown, charged: unknown`. A correction tells the charges. */
async function outcomeOf(sold: Promise<{ readonly body: Uint8Array }>): Promise<string> {
  try {
    const { answer = 'refunded' } = JSON.parse(Buffer.from((await sold).body).toString()) as { answer?: string };
    return answer;
  } catch (error) {
    if (!(error instanceof PaymentRefused)) {
      const { status, code, charged } = asAppError(error);
      return `${status} ${code}, charged: ${charged}`;
    }
    const { channelState, voucherState } = error.correction?.extra ?? {};
    const shown = channelState as { chargedCumulativeAmount?: string } | undefined;
    // The charges and the last voucher are shown together.
    if (shown?.chargedCumulativeAmount === undefined && voucherState) throw new Error('a voucher is shown alone');
    const reason = error.reason.replace('invalid_batch_settlement_evm_', '');
    return `402 ${reason}${shown ? `, charges: ${shown.chargedCumulativeAmount ?? 'not shown'}` : ''}`;
  }
}

/** As the stores throw it while the database is away. */
export const AWAY = async (): Promise<never> => {
  throw new AppError(503, 'ledger_unavailable', 'the ledger does not answer', { retryAfterSeconds: 5 });
};
