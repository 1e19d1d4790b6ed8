import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { defineEndpoint } from '../../../src/catalogue/endpoint.ts';
import { createClientTurns } from '../../../src/lib/limits/shares.ts';
import { callOf } from '../../../src/payment/checkout.ts';
import { bindHttp } from '../../../src/payment/lightning/binding.ts';
import { createIssuance, createNewcomers, createRecentBuyers } from '../../../src/payment/lightning/issuance.ts';
import type { Issuer } from '../../../src/payment/lightning/issuer.ts';
import { createReplyQuota } from '../../../src/payment/lightning/kept-replies.ts';
import { createOffers, type LightningCall } from '../../../src/payment/lightning/offers.ts';
import { createProofVerifier, createRedeem } from '../../../src/payment/lightning/redeem.ts';
import { createServeGranted } from '../../../src/payment/lightning/serve-granted.ts';
import { MAINNET } from '../../../src/payment/lightning/terms.ts';
import { decodePayment, quotedChallenge } from '../../../src/payment/protocols/x402/http.ts';
import type { LightningStore } from '../../../src/store/ports/lightning.ts';
import type { RateSource } from '../../../src/upstream/rates/bitcoin.ts';
import { openTestLedger, storesOf } from '../ledger/fresh-ledger.ts';
import { quiet } from '../quiet.ts';
import { openIssuerBench } from './issuer-bench.ts';
import { type LightningRequirement, proofHeader } from './lightning-buyer.ts';

/** Milliseconds that a handler may take. */
const HANDLER_MS = 5000;
const ORIGIN = 'https://api.example.com';

type Run = (tag: string, signal: AbortSignal) => Promise<string>;

interface Choices {
  /** Whether other parties make invoices with the node's key too. */
  readonly shared?: boolean;
  readonly limits?: { readonly client: number; readonly total: number };
  readonly quotaBytes?: number;
  readonly turns?: Parameters<typeof createClientTurns>[0];
  /** Without a node nothing is sold, but paid proofs are still served. */
  readonly hasNode?: boolean;
}

export type RailBench = Awaited<ReturnType<typeof openRailBench>>;

/** Opens the rail over a real ledger, a manual clock and a node's stand-in. The bench can pay the stand-in's invoices. */
export async function openRailBench(choices: Choices = {}) {
  const { shared = false, limits = { client: 0, total: 0 }, quotaBytes = 1_000_000, hasNode = true } = choices;
  const nodes = await openIssuerBench();
  const { clock, node } = nodes;
  const folder = mkdtempSync(join(tmpdir(), 'percall-rail-'));
  const db = openTestLedger(join(folder, 'ledger.db'));
  const real = storesOf(db).lightning;
  /** Members that replace the store's own. */
  const faults: Partial<LightningStore> = {};
  const store = new Proxy(real, {
    get: (_, name) => faults[name as keyof LightningStore] ?? real[name as keyof LightningStore],
  });
  const issuer = nodes.issuer();
  await issuer.start();
  const configuredIssuer: Issuer | null = hasNode ? issuer : null;
  const rates: RateSource = {
    current: async () => ({ rate: '64000', exchanges: [], retrievedAtMs: clock.nowMs() }),
  };
  const buyers = createRecentBuyers(clock);
  const newcomers = createNewcomers(clock);
  const quota = createReplyQuota(clock, quotaBytes);
  const handler = { runs: [] as string[], run: (async (tag) => `answer to ${tag}`) as Run };
  const warned: [level: string, message: string, detail: object][] = [];
  const log = {
    ...quiet,
    warn: (detail: object, message: string) => void warned.push(['warn', message, detail]),
    error: (detail: object, message: string) => void warned.push(['error', message, detail]),
  };
  const offers = createOffers({
    store,
    clock,
    issuer: configuredIssuer,
    rates,
    buyers,
    newcomers,
    quota,
    network: MAINNET,
    issuance: createIssuance(limits, clock),
    turns: createClientTurns(choices.turns ?? { running: 4, waiting: 4, waitingPerClient: 4 }),
  });
  const verifyProof = createProofVerifier({ store, issuer: configuredIssuer, rates, network: MAINNET, shared, clock });
  const serve = createServeGranted({ clock, log }, store, quota, HANDLER_MS, 900_000);
  const redeem = createRedeem({
    store,
    issuer: configuredIssuer,
    verifyProof,
    serve,
    buyers,
    shared,
    clock,
    bootId: 'boot',
  });
  const endpoint = defineEndpoint({
    path: '/test/rail',
    access: 'paid',
    priceUsd: '0.016',
    label: 'Rail',
    summary: 'Answers as the test says.',
    notFor: null,
    tags: '',
    ofChain: false,
    params: z.object({ tag: z.string() }),
    result: z.strictObject({ text: z.string() }),
    example: { params: { tag: 'a' }, result: { text: 'x' } },
    run: async ({ tag }: { tag: string }, _sources: null, signal) => {
      handler.runs.push(tag);
      return { text: await handler.run(tag, signal) };
    },
  });

  /** Makes a call for the answer to a tag. */
  function order(tag: string, more: Partial<LightningCall> = {}): LightningCall {
    const target = { kind: 'http', method: 'GET', url: `/v1/lightning/test/rail?tag=${tag}`, hasBody: false } as const;
    const binding = bindHttp({ method: 'GET', url: `${ORIGIN}${target.url}`, body: new Uint8Array() });
    if (!binding) throw new Error('no binding');
    const { signal } = new AbortController();
    const client = '192.0.2.1';
    const ask = { target, query: { tag }, client: () => client, identity: () => client, signal: () => signal };
    const running = { sources: { sale: null, offer: null, admit: null }, handlerTimeoutMs: HANDLER_MS };
    return { ...callOf(endpoint, '/v1/lightning/test/rail', ask, running), binding, ...more };
  }

  /** Requests an offer whose invoice the bench can pay. */
  async function ask(of: LightningCall, mayReuse = false) {
    const preimage = randomBytes(32);
    node.twist = { paymentHash: createHash('sha256').update(preimage).digest() };
    const quote = await offers(of, mayReuse).finally(() => {
      node.twist = {};
    });
    const { header, body } = quotedChallenge({ endpoint, url: ORIGIN, hint: '' }, quote);
    const [requirement] = JSON.parse(body).accepts as [LightningRequirement];
    const paymentHash = createHash('sha256').update(preimage).digest();
    return { header, body, requirement, preimage: preimage.toString('hex'), paymentHash };
  }

  /** Requests an offer and pays it. Returns the header that proves the payment, and the claim's key. */
  async function buy(of: LightningCall) {
    const { requirement, preimage, paymentHash } = await ask(of);
    node.pay(paymentHash);
    return { header: proofHeader(requirement, preimage), requirement, key: { network: MAINNET.id, paymentHash } };
  }

  return {
    clock,
    node,
    store,
    real,
    faults,
    issuer,
    rates,
    buyers,
    newcomers,
    quota,
    handler,
    warned,
    offers: (of: LightningCall, mayReuse = false) => offers(of, mayReuse),
    verifyProof,
    serve,
    redeemed: redeem,
    /** Redeems what a PAYMENT-SIGNATURE header holds. */
    redeem: async (...[order, header]: [Parameters<typeof redeem>[0], string]) => redeem(order, decodePayment(header)),
    endpoint,
    order,
    ask,
    buy,
    /** Changes the ledger from outside the rail. */
    sql: (text: string) => void db.exec(text),
    close: async () => {
      await nodes.close();
      db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
