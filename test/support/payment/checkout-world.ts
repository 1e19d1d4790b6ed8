import { createHash, randomBytes } from 'node:crypto';
import fastify from 'fastify';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { defineEndpoint, type Endpoint, type EndpointSpec } from '../../../src/catalogue/endpoint.ts';
import type { Config } from '../../../src/config.ts';
import { AppError, BadParameter } from '../../../src/errors.ts';
import { createPricedTool } from '../../../src/mcp/tools.ts';
import type { Call, Sold } from '../../../src/payment/call.ts';
import { type Checkout, onlyKnown, type RailFor } from '../../../src/payment/checkout.ts';
import { createGate, type Gate, type UnpaidPage } from '../../../src/payment/gate.ts';
import type { LightningRail } from '../../../src/payment/lightning/offers.ts';
import { MAINNET } from '../../../src/payment/lightning/terms.ts';
import type { Demand } from '../../../src/payment/protocol.ts';
import { AnswerGone } from '../../../src/payment/receipt.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import type { RailProbes } from '../../../src/payment/settling.ts';
import type { Payment } from '../../../src/store/ports/payments.ts';
import { createLightningCheckouts, lightningProtocol } from '../../../src/wiring/lightning.ts';
import * as surfaces from '../../../src/wiring/surfaces.ts';
import { openRailBench } from '../lightning/rail-bench.ts';
import { PLAIN_RAILS, TERMS } from '../service/terms.ts';
import { askOf, runningWith } from './call.ts';
import { asAppError, CLIENT, createCaller, PARAMS, PATHS, type Request, type Way } from './checkout-calls.ts';

// One priced endpoint, sold four ways: by the real gate and the real tool, in USDC and over Lightning. The rail in USDC
// takes any payment. That of Lightning is real, over a stand-in of a node. What they do with a payment can be replaced.

export const TOOL = 'paid_test_sold';
export const ORIGIN = TERMS.publicOrigin;
/** The entry of the plain rail, at the usual price. */
export const PLAIN = {
  scheme: 'exact',
  network: TERMS.network,
  amount: '16000',
  asset: TERMS.usdc,
  payTo: TERMS.payTo,
  // Seven days and a hundred seconds.
  maxTimeoutSeconds: 604_900,
  extra: { name: 'USDC', version: '2', assetTransferMethod: 'eip3009', decimals: 6 },
};
/** An invoice's entry, at the usual price and 64,000 dollars a bitcoin. */
export const IN_BITCOIN = { scheme: 'exact', network: MAINNET.id, amount: '25000', asset: 'BTC' };
export const PAYMENTS = {
  usdc: { x402Version: 2, accepted: PLAIN, payload: { signature: '0x' } },
  lightning: { x402Version: 2, accepted: IN_BITCOIN, payload: { preimage: '00' } },
};
/** Payments without their payload. */
export const UNREADABLE = {
  usdc: { x402Version: 2, accepted: PLAIN },
  lightning: { x402Version: 2, accepted: IN_BITCOIN },
};
/** Channels beside the plain rail. */
export const CHANNELS: Config['rails'] = {
  ...PLAIN_RAILS,
  channels: { authorizerKey: `0x${'11'.repeat(32)}`, withdrawDelaySeconds: 604_800, minDeposit: 1_000_000n } as never,
};

type Spec = EndpointSpec<z.ZodObject<{ a: z.ZodString; b: z.ZodString }>, z.ZodObject<{ text: z.ZodString }>, null>;

interface Choices {
  readonly endpoint?: Partial<Spec>;
  readonly rails?: Config['rails'];
  readonly isPlayMoney?: boolean;
  /** What the routes may send in place of a 402. */
  readonly page?: UnpaidPage;
}

/** What a rail was given to sell. */
interface Sale {
  readonly money: Way['money'];
  readonly params: unknown;
  readonly client: string;
  readonly identity: string | null;
  readonly payload: unknown;
  /** In USDC: the terms by which the rail was chosen. */
  readonly accepted?: unknown;
  readonly signal: AbortSignal;
}

/** Closed when the test has ended. */
export async function openCheckouts(choices: Choices = {}) {
  const { endpoint: more, rails = PLAIN_RAILS, isPlayMoney = false, page } = choices;
  const bench = await openRailBench();
  const { clock, node, quota, handler } = bench;
  const endpoint = soldEndpoint(more, handler.runs);
  const chain = { name: 'Arc', isPlayMoney };
  const sales: Sale[] = [];
  /** Offers over Lightning that were asked for. `isKept`: it may be given to its client again. */
  const offered: { readonly client: string; readonly params: unknown; readonly isKept: boolean }[] = [];
  /** In order: an answer leaves, its delivery is noted, and what was logged. */
  const events: string[] = [];
  /** Why payments got no answer, as gates and the tool told it. */
  const refusals: unknown[] = [];
  const onRefused = (error: unknown) => void refusals.push(error);
  const state = { probes: {} as RailProbes, noting: async () => {}, sell: null as null | (() => Promise<Sold>) };

  async function sell(sale: Sale, usual: () => Promise<Sold>): Promise<Sold> {
    sales.push(sale);
    const { onSent, ...sold } = await (state.sell ?? usual)();
    const note = async () => {
      events.push('noted');
      await state.noting();
      await onSent?.();
    };
    return onSent ? { ...sold, onSent: note } : sold;
  }

  const network = { ...chain, caip2: TERMS.network, usdc: TERMS.usdc } as never;
  const config = { network, seller: TERMS.payTo, publicOrigin: ORIGIN, rails };
  const offerOf = surfaces.offersUnder(config, { probes: () => state.probes });
  // The world reads no parameters by itself: that a checkout has read them is what tests look for.
  const saleOf = (money: Way['money'], call: Call, payload: unknown): Sale => {
    const { client, identity, signal } = call;
    return {
      money,
      get params() {
        return call.params();
      },
      client,
      identity,
      signal,
      payload,
    };
  };
  const railFor: RailFor = (accepted) => ({
    recognises: () => true,
    sell: async (call, { payload }) =>
      sell({ ...saleOf('usdc', call, payload), accepted }, async () => ({
        body: await call.run('sale', call.signal),
        receipt: {
          success: true,
          payer: '0x01',
          transaction: '0x02',
          network: TERMS.network,
          amount: call.plain.amount,
        },
        at: 1,
        onSent: async () => {},
      })),
  });
  const rail: LightningRail = {
    recognises: ({ network: named }) => named === MAINNET.id,
    sell: async (call, credential) =>
      sell(saleOf('lightning', call, credential.payload), () => bench.redeemed(call, credential)),
    offer: (call, mayReuse) => {
      offered.push({
        client: call.client,
        get params() {
          return call.params();
        },
        isKept: call.target.kind === 'http',
      });
      return bench.offers(call, mayReuse);
    },
  };
  const running = runningWith(null);
  const checkouts = surfaces.createCheckouts<null>({ railFor, running });
  const inBitcoin = createLightningCheckouts<null>({ rail, network: MAINNET }, running, {
    publicOrigin: ORIGIN,
    network: chain as never,
  });
  const protocol = lightningProtocol({ current: randomBytes(32), previous: null }, 'data.example', clock);
  const usdc = checkouts.usdcRoutes(offerOf, null)(endpoint);
  const lightning = inBitcoin.routes(protocol)(endpoint);
  const log = { error: (_: object, message: string) => void events.push(message) };
  const gating = { log, onRefused, ...(page && { pageOf: () => page }) };
  const gatesOf = (sold: Record<Way['money'], Checkout<unknown, Demand>>) => ({
    usdc: createGate<null>({ checkoutOf: () => sold.usdc, protocol: surfaces.usdcProtocol, ...gating }),
    lightning: createGate<null>({ checkoutOf: () => sold.lightning, protocol, ...gating }),
  });
  const gates = gatesOf({ usdc, lightning });
  const ofTools = { usdc: checkouts.usdcTools(offerOf), lightning: inBitcoin.tools };
  const tool = createPricedTool(endpoint, {
    sources: null,
    publicOrigin: ORIGIN,
    chain,
    network: TERMS.network,
    words: surfaces.wordsOfRefusal,
    protocol: surfaces.toolProtocol,
    isLightning: rail.recognises,
    checkoutOf: (of, money) => ofTools[money](of),
    onRefused,
  });
  const readTarget = (url: string) => {
    const target = { kind: 'http', method: 'GET', url, hasBody: false } as const;
    return lightning.read(askOf({ target, query: PARAMS, client: CLIENT }));
  };

  onTestFinished(() => bench.close());
  const app = await mountRoutes(endpoint, gates, events);
  const { call, begin } = createCaller(app, tool, events);
  const doing = (error: Error) => {
    state.sell = () => Promise.reject(error);
  };

  return {
    endpoint,
    app,
    gate: gates.usdc,
    tool,
    sales,
    offered,
    events,
    refusals,
    runs: handler.runs,
    /** The texts of the invoices that the node has made. */
    invoices: () => node.invoices.map(({ text }) => text),
    call,
    /** The calls of the same routes, once they are not sold any more. `refusal`: another one than that. */
    withdraw: async (refusal?: () => AppError) => {
      const known = { usdc: onlyKnown(usdc, refusal), lightning: onlyKnown(lightning, refusal) };
      return createCaller(await mountRoutes(endpoint, gatesOf(known), events), tool, events).call;
    },
    /** Asks for the price, and pays for it. An offer from before is too old by then. */
    buy: async (way: Way, request: Request = {}) => {
      await clock.advance(60_000);
      const preimage = randomBytes(32);
      const paymentHash = createHash('sha256').update(preimage).digest();
      node.twist = { paymentHash };
      const { accepts: [accepted] = [] } = await call(way, request);
      node.twist = {};
      if (way.money === 'usdc') return { ...PAYMENTS.usdc, accepted };
      node.pay(paymentHash);
      return { x402Version: 2, accepted, payload: { preimage: preimage.toString('hex') } };
    },
    /** Presents a payment, and leaves while it is sold. Returns why the rail was told to stop. */
    leave: async (way: Way): Promise<unknown> => {
      const [started, told] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()];
      state.sell = () => {
        const signal = sales.at(-1)?.signal;
        signal?.addEventListener('abort', () => told.resolve(signal.reason), { once: true });
        started.resolve();
        return told.promise.then((reason) => Promise.reject(reason));
      };
      const leave = await begin(way, { payment: PAYMENTS[way.money] });
      await started.promise;
      leave();
      return told.promise;
    },
    /** Reads a request target over Lightning that no HTTP library sends here. Throws BadParameter. */
    readTarget,
    refuses: (...refusal: ConstructorParameters<typeof PaymentRefused>) => doing(new PaymentRefused(...refusal)),
    answerIsGone: (receipt: AnswerGone['receipt']) => doing(new AnswerGone({} as Payment, receipt)),
    fails: doing,
    /** Sells with a receipt that nobody can write down. */
    sellsUnreadably: () => {
      state.sell = async () => ({
        body: Buffer.from('{"text":"answer"}'),
        receipt: { amount: 1n } as never,
        at: 1,
        onSent: async () => {},
      });
    },
    cannotNoteDeliveries: () => {
      state.noting = () => Promise.reject(new Error('disk'));
    },
    /** From now on no invoice can be made, because a reply could not be kept. */
    fillReplyStore: () => quota.set({ all: 2_000_000, offered: 0 }),
    /** What a probe has found of the channels' contract; null while nobody has looked. */
    channelsFound: (ok: boolean | null) => {
      state.probes = ok === null ? {} : { channels: { ok, detail: '' } };
    },
  };
}

/** Closed when the test has ended. */
async function mountRoutes(endpoint: Endpoint<null>, gates: Record<Way['money'], Gate<null>>, events: string[]) {
  const app = fastify();
  app.setErrorHandler((error, _request, reply) => {
    const { status, code, message: detail, charged } = asAppError(error);
    return reply.code(status).send({ code, detail, charged });
  });
  app.addHook('onSend', async () => void events.push('answered'));
  app.route({ method: ['GET', 'HEAD'], url: PATHS.usdc, ...gates.usdc.guard(endpoint) });
  app.route({ method: ['GET', 'POST'], url: PATHS.lightning, ...gates.lightning.guard(endpoint) });
  await app.ready();
  onTestFinished(() => app.close());
  return app;
}

function soldEndpoint(more: Partial<Spec> = {}, runs: string[]) {
  return defineEndpoint<Spec['params'], Spec['result'], null>({
    path: '/test/sold',
    access: 'paid',
    priceUsd: '0.016',
    label: 'Sold',
    summary: 'Tells a thing.',
    notFor: null,
    tags: '',
    ofChain: false,
    freeSummary: '/v1/test/free',
    params: z.object({ a: z.string(), b: z.string() }),
    result: z.object({ text: z.string() }),
    example: { params: { a: 'x', b: 'y' }, result: { text: 'x' } },
    checkParams: ({ b }) => {
      if (b === 'unwatched') throw new BadParameter([{ path: 'b', message: 'is not sold' }]);
      if (b === 'away') throw new AppError(503, 'away', 'cannot be judged now');
    },
    run: async ({ a }) => {
      runs.push(a);
      return { text: `answer to ${a}` };
    },
    ...more,
  });
}
