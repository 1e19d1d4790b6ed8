import { onTestFinished } from 'vitest';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { createLedger } from '../../../src/payment/ledger.ts';
import { createFailures, createUnknownPayments } from '../../../src/payment/limits.ts';
import type { Credential } from '../../../src/payment/protocol.ts';
import type { UsdcRail } from '../../../src/payment/rail.ts';
import { createSales, type SaleContext } from '../../../src/payment/sale.ts';
import { createSettleRows } from '../../../src/payment/settle-rows.ts';
import { type Authorization, type Intent, type Outcome, paymentKey, REVERTED } from '../../../src/payment/settler.ts';
import { createChainCheck, createContractBudget } from '../../../src/payment/usdc/checks.ts';
import { createEvidence } from '../../../src/payment/usdc/evidence.ts';
import { openExact } from '../../../src/payment/usdc/exact.ts';
import { settleRequest } from '../../../src/payment/usdc/facilitator.ts';
import { gatewayExtra, gatewayRequirement, openGatewayRail } from '../../../src/payment/usdc/gateway.ts';
import { storesOver } from '../../../src/store/open.ts';
import { createUpstreams } from '../../../src/upstream/client/client.ts';
import { openClient } from '../chain/client.ts';
import { RpcFault } from '../chain/rpc-server.ts';
import { openMemoryLedger } from '../ledger/fresh-ledger.ts';
import { sale } from '../ledger/ledger-rows.ts';
import { openMemory } from '../ledger/memory-ledger.ts';
import { quiet } from '../quiet.ts';
import { moodyEndpoint } from '../service/moody-endpoint.ts';
import { watchedUpstreams } from '../upstream/watched-upstreams.ts';
import { signForGateway } from '../usdc/gateway-payment.ts';
import { startGatewayStandIn } from '../usdc/gateway-stand-in.ts';
import { newKey, payloadOf, plainRequirement, type Requirement, signAuthorization, USDC } from '../usdc/payments.ts';
import { startTokenNode } from '../usdc/token-node.ts';
import { runningWith, usdcCallOf } from './call.ts';

// The worlds of the rails `usdc-exact` and `usdc-gateway`. Each sells a call for one signed payment, from the first
// check to the settled row, over the real ledger in memory. Only this file knows how a rail is opened and sells.

export const WALLET = `0x${'77'.repeat(20)}` as const;
/** Another contract whose payments take from the payer's balance, as the token's own do. */
export const SHARING = `0x${'11'.repeat(20)}` as const;
export const SELLER = newKey();
/** What `sell` returns, where the call was sold. */
export const ANSWERED = { body: Buffer.from('{"tag":"none","run":1}') };

const PLAIN = plainRequirement(SELLER.address);
const NETWORK = PLAIN.network;
const [HANDLER_MS, SETTLE_MS] = [10_000, 5000];
/** How long a sale waits for its end: longer than any pause of a busy machine. */
const WAIT_MS = 60_000;
const RAILS = { remote: null, gateway: null, channels: null, exactFrom: 0n };
const CONFIG = {
  network: { caip2: NETWORK, chainId: 5042, usdc: USDC },
  publicOrigin: 'https://a.test',
  handlerTimeoutMs: HANDLER_MS,
  settleWaitMs: SETTLE_MS,
  receiptPollMs: 10,
};

/** A payment as its client presents it, with what was signed. */
type Signed = Credential & { readonly authorization: Authorization };
type Changes = Parameters<typeof signAuthorization>[2] & { readonly key?: ReturnType<typeof newKey> };

interface CallChanges {
  /** In USDC base units; by default 1000. */
  readonly price?: bigint;
  readonly client?: string;
  readonly signal?: AbortSignal;
}

const plainOf = (units = 1000n) => ({ ...PLAIN, amount: String(units) });
const presented = (authorization: Authorization, accepted: Requirement): Signed => {
  const { payload } = payloadOf(authorization, accepted);
  const read = payload as Credential['payload'];
  return { protocol: 'x402', accepted: { ...accepted }, payload: read, identifier: () => null, authorization };
};

/** The ledger of one test, its clock, and what was asked for. */
function openKit() {
  const db = openMemoryLedger();
  const stores = storesOver(openMemory(db));
  // It stands still until a test moves it. Its sleeps take as long as the machine's.
  const clock = { ...systemClock, now: Date.now(), nowMs: (): number => clock.now };
  const asked: string[] = [];
  const { reserve } = stores.payments;
  stores.payments.reserve = (...given) => {
    asked.push('reserve');
    return reserve(...given);
  };
  const limits = { storeBytes: 1e6, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  const ledger = createLedger({ store: stores.payments, clock, bootId: 'boot', ...limits });
  onTestFinished(async () => {
    await stores.close();
    db.close();
  });
  /** What the rail's settler says of itself, where something is wrong. */
  const says: { unavailable?: string; payerRefused?: string; codeRefused?: string } = {};
  const status = {
    unavailable: () => says.unavailable ?? null,
    cannotSend: () => null,
    refuses: () => says.payerRefused ?? null,
    refusesCode: () => says.codeRefused ?? null,
  };
  return { db, stores, clock, asked, ledger, says, status, log: quiet };
}

type Kit = ReturnType<typeof openKit>;

/** Sells over a rail. `relay`: what our relayer does with an intent. `waitMs`: how long a sale waits for its end. */
function openSale(
  kit: Kit,
  open: (sales: SaleContext) => UsdcRail,
  waitMs: number,
  relay: (intent: Intent) => Promise<Outcome>,
) {
  const { db, stores, clock, asked, ledger, says } = kit;
  const settle = (intents: readonly Intent[]) => {
    asked.push('settle');
    return intents.map(relay);
  };
  const rows = createSettleRows({ clock, log: quiet }, ledger, () => settler, waitMs);
  const rail = open(
    createSales({
      ledger,
      settling: rows,
      failures: createFailures({ payer: 0, client: 0, clientSettlements: 0 }, clock),
      unknown: createUnknownPayments({ ledger, limits: { payer: 0, client: 0 }, clock }),
      clock,
      network: NETWORK,
      log: quiet,
    }),
  );
  const { contract } = rail;
  const settler = rail.openSettler({
    noteBroadcast: ledger.noteBroadcast,
    relayer: () => ({ settle, unavailable: () => null }) as never,
  });
  onTestFinished(() => settler.stop());

  return {
    stores,
    settler,
    clock,
    says,
    /** In order: what the chain or the Gateway was asked, `reserve` of the store, `run` of the endpoint, `settle`. */
    asked,
    sell: async ({ price = 1000n, client = 'a client', signal }: CallChanges, credential: Credential) => {
      const { endpoint } = moodyEndpoint();
      const sold: typeof endpoint = {
        ...endpoint,
        price: { units: price, usd: 'not read' },
        run: (...given) => {
          asked.push('run');
          return endpoint.run(...given);
        },
      };
      const asking = { client, ...(signal && { signal }) };
      const running = runningWith({} as Sources, HANDLER_MS);
      return rail.sell(usdcCallOf(sold, plainOf(price), { asking, running }), credential);
    },
    /** The ledger's row of a payment. */
    row: ({ authorization }: Signed) => ledger.find(paymentKey(authorization, NETWORK, contract)),
    /** Gives a payment's payer another open payment, by default over this rail. */
    owe: async ({ authorization: { from, nonce } }: Signed, amount: bigint, at?: `0x${string}`) => {
      const terms = { network: NETWORK, contract: at ? hexToBytes(at) : contract, payer: from, amount };
      await ledger.reserve(sale(`beside ${nonce}`, terms), false);
      asked.pop();
    },
    /** Makes all rows such as a version without `checkedBlock` wrote. */
    forgetBlocks: () => void db.exec('UPDATE usdc_payments SET checked_block = NULL'),
  };
}

/** A world of `usdc-exact`: a chain whose payers, evidence and relayer do what the test says. */
export async function openExactSale({ exactFrom = 0n } = {}) {
  const [kit, node] = [openKit(), await startTokenNode()];
  const { asked, clock, ledger } = kit;
  const chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 30_000 });
  onTestFinished(async () => {
    await chain.close();
    await node.server.stop();
  });
  /** Every payer: its balance, its code, whether that agrees to any signature, and lets a transfer succeed. */
  const payer = { holds: 10n ** 9n, hasCode: false, agrees: false, pays: true };
  /** The chain's newest block, and whether what our relayer sends moves nothing. */
  const [head, relayer] = [{ block: 2000 }, { movesNothing: false }];
  let afterRead = (): unknown => null;

  const { methods } = node.server;
  const [honest, hex] = [methods.eth_call, (value: number) => `0x${value.toString(16)}`];
  node.balanceAt = () => payer.holds;
  methods.eth_gasPrice = () => '0x1';
  methods.eth_blockNumber = () => hex(head.block);
  methods.eth_getBlockByNumber = () => ({ number: hex(head.block), timestamp: hex(Math.floor(clock.now / 1000)) });
  methods.eth_getCode = () => (payer.hasCode ? '0x60' : '0x');
  methods.eth_call = (params) => {
    const { to, gasPrice } = params[0] as { to?: string; gasPrice?: string };
    if (gasPrice && !payer.pays) throw new RpcFault(3, 'execution reverted');
    if (to === undefined || to === USDC) return honest?.(params);
    return `0x${(payer.agrees ? '1626ba7e' : 'ffffffff').padEnd(64, '0')}`;
  };

  const [check, evidence] = [createChainCheck(chain, USDC, () => USDC), createEvidence(chain, USDC)];
  const needs = {
    ...kit,
    config: { ...CONFIG, rails: { ...RAILS, exactFrom } },
    chain,
    contracts: createContractBudget(clock),
    balanceContracts: [USDC, SHARING].map(hexToBytes),
    check: {
      ...check,
      admit: async (...given: Parameters<typeof check.admit>) => {
        asked.push(given[2] ? 'read a signed payer' : 'read an unproven payer');
        const reading = await check.admit(...given);
        afterRead();
        return reading;
      },
      simulate: (...given: Parameters<typeof check.simulate>) => {
        asked.push('simulate');
        return check.simulate(...given);
      },
    },
    evidence: {
      ...evidence,
      lookup: (...given: Parameters<typeof evidence.lookup>) => {
        asked.push(`look from ${given[1]} as ${given[2]?.rank}`);
        return evidence.lookup(...given);
      },
    },
  };
  const opened = (sold: SaleContext) => openExact({ ...needs, sales: sold } as never, kit.status);
  const sales = openSale(kit, opened, WAIT_MS, async ({ id, authorization }) => {
    if (relayer.movesNothing) return { kind: 'failed', reason: REVERTED };
    const transaction = hexToBytes(node.pay(authorization).transactionHash);
    await ledger.noteBroadcast([{ id, transaction }]);
    return { kind: 'settled', transaction, block: 100, paid: authorization.value };
  });

  /** `from`: the payer that is named, where it is not the one who signs. */
  const pay = ({ key = newKey(), from, ...changes }: Changes & { from?: `0x${string}` } = {}) => {
    const terms = plainOf(changes.value);
    const authorization = signAuthorization(key.privateKey, terms, changes);
    return presented(from ? { ...authorization, from: hexToBytes(from) } : authorization, terms);
  };
  const sell = (call: CallChanges = {}, credential: Credential = pay()) => sales.sell(call, credential);
  return {
    ...sales,
    payer,
    head,
    pay,
    sell,
    /** Sells a payment whose settlement moves nothing. Then the relayer works again, and what was asked is forgotten. */
    sellInVain: async (credential: Credential) => {
      relayer.movesNothing = true;
      const refusal = await sell({}, credential).catch((error: unknown) => error);
      relayer.movesNothing = false;
      asked.length = 0;
      return refusal;
    },
    /** What others do with a payment on the chain. `hides`: uses it, and no log shows how. */
    pays: ({ authorization }: Signed) => void node.pay(authorization),
    cancels: ({ authorization }: Signed) => node.cancel(authorization),
    hides: ({ authorization }: Signed) => node.hide(authorization),
    /** Runs once, after the next read of a payer. */
    afterNextRead: (work: () => void) => {
      afterRead = () => {
        afterRead = () => null;
        work();
      };
    },
  };
}

/** A world of `usdc-gateway`, over the stand-in of Circle's Gateway, which a test may script. */
export async function openGatewaySale({ handlerTimeoutMs = HANDLER_MS, waitMs = WAIT_MS } = {}) {
  const [kit, gateway] = [openKit(), await startGatewayStandIn(5042, WALLET)];
  const { asked, stores } = kit;
  const upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
  onTestFinished(async () => {
    await gateway.stop();
    await upstreams.close();
  });
  const alerts: object[] = [];
  const service = { url: gateway.url, token: 'gw-token', wallet: WALLET, timeoutMs: 60_000 };
  const needs = {
    ...kit,
    config: { ...CONFIG, handlerTimeoutMs, rails: { ...RAILS, gateway: service } },
    token: { check: async () => true },
    transfers: stores.transfers,
    outgoing: { upstreams: watchedUpstreams(upstreams, (name) => asked.push(name)) },
    log: { ...quiet, error: (detail: object) => void alerts.push(detail) },
  };
  const opened = (sold: SaleContext) => openGatewayRail({ ...needs, sales: sold } as never, kit.status);
  const sales = openSale(kit, opened, waitMs, async () => ({ kind: 'unknown' }));

  /** Presents what was signed, by whatever key and for whatever contract, as a payment for the Gateway. */
  const present = (authorization: Authorization) =>
    presented(authorization, gatewayRequirement(plainOf(authorization.value), WALLET));
  /** `deposit`: what the payer gets there. */
  const pay = ({ key = newKey(), deposit = 5000n, ...changes }: Changes & { deposit?: bigint } = {}) => {
    if (deposit > 0n) gateway.deposit(key.address, deposit);
    return present(signForGateway(key.privateKey, plainOf(changes.value), WALLET, changes));
  };
  const sell = (call: CallChanges = {}, credential: Credential = pay()) => sales.sell(call, credential);
  return {
    ...sales,
    gateway,
    alerts,
    present,
    pay,
    sell,
    /** Sells a payment that the Gateway refuses to settle. Then it settles again, and what was asked is forgotten. */
    sellInVain: async (credential: Credential) => {
      gateway.fault('refuses');
      const refusal = await sell({}, credential).catch((error: unknown) => error);
      gateway.fault(null);
      asked.length = 0;
      return refusal;
    },
    /** Hands a payment over to the Gateway, as another seller would. */
    spends: async ({ authorization }: Signed) => {
      const { network, publicOrigin } = CONFIG;
      const terms = { network: network.caip2, usdc: USDC, extra: gatewayExtra(WALLET), publicOrigin };
      const body = JSON.stringify(settleRequest(authorization, terms));
      await fetch(`${gateway.url}/v1/x402/settle`, { method: 'POST', body });
    },
    /** The requests that came to an address of the Gateway. */
    requests: (path: string) => gateway.asked.filter((one) => one.path === path),
  };
}
