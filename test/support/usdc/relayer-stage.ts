import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { createAccount, type EmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { loadConfig } from '../../../src/config.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { AppError } from '../../../src/errors.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import { createWallet } from '../../../src/payment/relayer/transactions.ts';
import { AUTHORIZATION_USED, TRANSFER } from '../../../src/payment/usdc/token.ts';
import { createPayments } from '../../../src/wiring/payments.ts';
import { createOffer, termsOf } from '../../../src/wiring/surfaces.ts';
import { openClient } from '../chain/client.ts';
import { type FaultProxy, startFaultProxy } from '../chain/fault-proxy.ts';
import { openTestLedger, storesOf } from '../ledger/fresh-ledger.ts';
import { runningWith, sellFor, usdcCallOf } from '../payment/call.ts';
import { latchedEndpoint } from '../service/latch.ts';
import { balanceOf } from './buyer.ts';
import { headerOf, newKey, payloadOf, type Requirement, signAuthorization } from './payments.ts';
import { createTestOutgoing } from './test-outgoing.ts';

interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly logIndex: string;
}

const PRICE = 1000n;
/** A handler waits at the latch for as long as a busy machine takes to bring the others there. */
const HANDLER_MS = 120_000;
/** Ends a payment that has no end, in milliseconds. Thousands of payments may share the machine. */
const END_MS = 240_000;
const topic = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;
const sleep = (ms: number) => new Promise((next) => setTimeout(next, ms));

/** One authorization, and all answers to it. */
export interface Sale {
  readonly authorization: ReturnType<typeof signAuthorization>;
  readonly requirement: Requirement;
  readonly header: string;
  readonly privateKey: Uint8Array;
  /** The answers in order: `served`, or a status with its code or x402's reason. */
  readonly answers: string[];
}

/** The real payment rail with a relayer key, a seller and a ledger of its own, behind a node that a test makes fail. */
export async function openStage(network: EmbeddedNetwork, { providers = 1 }: { providers?: 1 | 3 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'percall-stage-'));
  const proxy: FaultProxy = await startFaultProxy(network.rpcUrl);
  const [relayer, seller] = [createAccount(), createAccount()];
  await network.fundNative(relayer.address, 10n ** 20n);
  // Two hosts of the same honest node, so that two agree whatever the failing one does.
  const others = [network.rpcUrl, network.rpcUrl.replace('127.0.0.1', 'localhost')];
  const config = loadConfig({
    ...embeddedEnvironment(network),
    SELLER_ADDRESS: seller.address,
    RELAYER_PRIVATE_KEY: relayer.privateKey,
    DATA_DIR: folder,
    RPC_URLS: (providers === 3 ? [proxy.url, ...others] : [proxy.url]).join(),
    PAYER_MAX_OPEN: '0',
    PAYER_FAILURES_PER_MINUTE: '0',
    CLIENT_FAILURES_PER_MINUTE: '0',
    CLIENT_FAILED_SETTLEMENTS_PER_DAY: '0',
    // Handlers wait until all payments of a fault have been checked and the fault is there. A handler that ended before would take its payment back.
    HANDLER_TIMEOUT_MS: '120000',
    RPC_TIMEOUT_MS: '2500',
    SETTLE_WAIT_MS: '1000',
    RECONCILE_INTERVAL_MS: '500',
    RECEIPT_POLL_MS: '100',
    RELAYER_DAILY_GAS_USDC: 'off',
  });
  const { chainId, usdc, rpcUrls } = config.network;
  const log = pino({ level: process.env.TEST_LOG ?? 'silent' });
  const chain = openClient({ rpcUrls, chainId, timeoutMs: config.rpcTimeoutMs });
  const db = openTestLedger(join(folder, 'ledger.db'));
  const { payments: store, books: _books, ...stores } = storesOf(db);
  const payments = createPayments({
    ...stores,
    config,
    chain,
    store,
    clock: systemClock,
    bootId: 'stage',
    outgoing: createTestOutgoing(),
    log,
  });
  await chain.watch();
  await payments.start();
  const latch = latchedEndpoint();
  const terms = { ...termsOf(config), publicOrigin: 'http://here' };
  const { requirement } = createOffer(latch.endpoint, terms);
  const sales: Sale[] = [];

  /** A payment signed with this key, ready to be presented. */
  function newSale(privateKey: Uint8Array, from?: Uint8Array): Sale {
    const signed = signAuthorization(privateKey, requirement as Requirement);
    const authorization = from ? { ...signed, from } : signed;
    const header = headerOf(payloadOf(authorization, requirement as Requirement));
    const sale = { authorization, requirement: requirement as Requirement, header, privateKey, answers: [] };
    sales.push(sale);
    return sale;
  }

  /** A payer with this many payments and exactly their sum. */
  async function newPayer(payments = 1): Promise<{ address: `0x${string}`; privateKey: Buffer; sales: Sale[] }> {
    const key = newKey();
    await network.fundUsdc(key.address, PRICE * BigInt(payments));
    return { ...key, sales: Array.from({ length: payments }, () => newSale(key.privateKey)) };
  }

  /** Presents once and returns the answer as a short text. */
  async function present(sale: Sale): Promise<string> {
    const call = usdcCallOf(latch.endpoint, requirement, { running: runningWith({} as Sources, HANDLER_MS) });
    const answer = await sellFor(payments.railFor, call, sale.header).then(
      () => 'served',
      (error: unknown) => {
        if (error instanceof PaymentRefused) return `402 ${error.reason}`;
        return error instanceof AppError ? `${error.status} ${error.code}` : String(error);
      },
    );
    sale.answers.push(answer);
    return answer;
  }

  /** Presents until the answer is final. A 402 is final, because a buyer's client signs a new payment on it. */
  async function untilEnded(sale: Sale): Promise<string> {
    const deadline = Date.now() + END_MS;
    for (;;) {
      const answer = await present(sale);
      if (answer === 'served' || answer.startsWith('402') || answer === '429 payer_refused') return answer;
      if (Date.now() > deadline) throw new Error(`no end: ${sale.answers.join(', ')}`);
      await sleep(150);
    }
  }

  /** Returns the broken promises once every buyer has the last answer. Empty when all hold. */
  async function findings(): Promise<string[]> {
    const found: string[] = [];
    for (const deadline = Date.now() + END_MS; Date.now() < deadline && (await open()) > 0; ) await sleep(100);
    const counts = await payments.ledger.countByState();
    if (counts.reserved + counts.settling + counts.unknown > 0) found.push(`left open: ${JSON.stringify(counts)}`);
    const served = sales.filter(({ answers }) => answers.includes('served'));
    for (const sale of sales) {
      const story = sale.answers.join(', ');
      const moved = await transfersOf(sale);
      if (moved !== Number(served.includes(sale))) found.push(`moved ${moved} times: ${story}`);
      if (sale.answers.some((answer) => !/^(served|\d{3} )/.test(answer))) found.push(`a bug's answer: ${story}`);
      const refused = sale.answers.findIndex((answer) => answer.startsWith('402'));
      if (refused !== -1 && sale.answers.slice(refused).includes('served')) found.push(`served after 402: ${story}`);
    }
    const [earned, expected] = [await balanceOf(network, seller.address), PRICE * BigInt(served.length)];
    if (earned !== expected) found.push(`the seller has ${earned}, ${served.length} were served`);
    if (PRICE * BigInt(counts.settled) !== earned) found.push(`settled ${counts.settled}, the seller has ${earned}`);
    return found;
  }

  async function open(): Promise<number> {
    const { reserved, settling, unknown } = await payments.ledger.countByState();
    return reserved + settling + unknown;
  }

  /** How often the chain moved the price under exactly this authorization. Its payer may have other payments too. */
  async function transfersOf({ authorization: { from, nonce } }: Sale): Promise<number> {
    const topics = [AUTHORIZATION_USED, topic(from), topic(nonce)];
    const filter = { address: usdc, topics, fromBlock: '0x0', toBlock: 'latest' };
    const uses = await network.rpc<{ transactionHash: string; logIndex: string }[]>('eth_getLogs', [filter]);
    let moved = 0;
    for (const use of uses) {
      const { logs } = await network.rpc<{ logs: Log[] }>('eth_getTransactionReceipt', [use.transactionHash]);
      const after = logs.filter((log) => log.address === usdc && Number(log.logIndex) > Number(use.logIndex));
      const [next] = after;
      const isOurs =
        next?.topics[0] === TRANSFER &&
        next.topics[1] === topic(from) &&
        next.topics[2] === topic(hexToBytes(seller.address));
      if (isOurs && BigInt(next.data) === PRICE) moved++;
    }
    return moved;
  }

  return {
    network,
    proxy,
    latch,
    sales,
    seller: seller.address,
    relayer: { ...relayer, wallet: createWallet(relayer.privateKey, network.chainId) },
    newPayer,
    newSale,
    present,
    untilEnded,
    findings,
    close: async () => {
      await payments.stop();
      await store.close();
      await chain.close();
      await proxy.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type Stage = Awaited<ReturnType<typeof openStage>>;
