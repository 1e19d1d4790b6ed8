import {
  type Authorization,
  type Presentation,
  type Rail,
  type Reported,
  type Requirement,
  readAny,
  type Voucher,
} from '../record/presentation.ts';
import type { Route } from '../service/catalogue.ts';
import { WITHDRAW_DELAY_SECONDS } from '../service/environment.ts';
import type { ClientRequest, Instance, Received } from '../service/instance.ts';
import type { SignedDeposit } from '../world/chain/channel-terms.ts';
import { type Hex, toHex } from '../world/chain/keys.ts';
import { USDC } from '../world/chain/token.ts';
import { GATEWAY_WALLET } from '../world/gateway.ts';
import type { World } from '../world/world.ts';
import { channelPayload } from './channel-client.ts';

/** Where a request comes from and goes to. */
export interface Way {
  /** The client's address. */
  readonly from: string;
  /** The instance that the load balancer chooses. */
  readonly at: string;
  readonly viaTools?: boolean;
  /** The client hangs up after so many milliseconds. */
  readonly abandonMs?: number | null;
}

/** What is bought. */
export interface Wanted {
  readonly route: Route;
  readonly tag: string;
}

interface Payment extends Wanted {
  readonly by: string;
  readonly authorization: Authorization & { readonly rail: 'usdc' | 'gateway' };
  /** What the buyer says that he accepted. */
  readonly accepted: Requirement;
  readonly identifier: string | null;
  /** Writes addresses and nonces in another spelling. */
  readonly shouted?: boolean;
}

/** A payment from a channel, a deposit into one, or the request for a refund. */
export interface ChannelOrder extends Wanted {
  readonly by: string;
  readonly voucher: Voucher;
  readonly deposit: SignedDeposit | null;
  /** Of a refund, in base units; null asks for all that is left. */
  readonly units: bigint | null;
  /** Of the deposit. */
  readonly authorization: Authorization | null;
  readonly identifier: string | null;
}

interface Proof extends Wanted {
  readonly by: string;
  readonly accepted: Requirement;
  readonly preimage: string;
  readonly paymentHash: string;
}

/** As the service offers it: for how long a deposit's authorization may be good. */
const DEPOSIT_SECONDS = 600;
const MCP_HEADERS = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');

/** The parameters of a request, as they stand in its URL. */
export const queryOf = ({ route, tag }: Wanted): string => (route.tagged ? `tag=${tag}` : route.query);
/** A request by what it asks for, whatever way it comes. */
export const askedOf = (wanted: Wanted): string => `${wanted.route.path}?${queryOf(wanted)}`;

/** Sends requests to the service as clients do, and writes down what was presented. */
export function createDesk(world: World) {
  const { instances, book, accounts, chain, scenario } = world;
  const open = new Set<ClientRequest>();
  const instanceOf = (name: string): Instance =>
    instances.find((one) => one.name === name) ?? (instances[0] as Instance);

  function requirement(route: Route, rail: 'usdc' | 'gateway'): Requirement {
    const gateway = { name: 'GatewayWalletBatched', version: '1', verifyingContract: GATEWAY_WALLET };
    return {
      scheme: 'exact',
      network: `eip155:${chain.chainId}`,
      amount: String(route.price),
      asset: USDC,
      payTo: accounts.seller.address,
      maxTimeoutSeconds: 604_900,
      extra: rail === 'gateway' ? gateway : { name: 'USDC', version: '2', assetTransferMethod: 'eip3009' },
    };
  }

  function channelRequirement(route: Route): Requirement {
    const minDeposit = String(Math.round(Number(scenario.env.CHANNELS_MIN_DEPOSIT_USDC || 1) * 1e6));
    const own = { receiverAuthorizer: accounts.authorizer.address, withdrawDelay: WITHDRAW_DELAY_SECONDS, minDeposit };
    return {
      ...requirement(route, 'usdc'),
      scheme: 'batch-settlement',
      maxTimeoutSeconds: DEPOSIT_SECONDS,
      extra: { name: 'USDC', version: '2', ...own },
    };
  }

  function request(wanted: Wanted, way: Way, surface: 'paid' | 'lightning', payment: unknown): ClientRequest {
    const { from, viaTools = false } = way;
    if (!viaTools) {
      const headers: Record<string, string> = payment === null ? {} : { 'payment-signature': base64(payment) };
      return { method: 'GET', url: `/v1/${surface}${wanted.route.path}?${queryOf(wanted)}`, headers, from };
    }
    const words = wanted.route.path.split('/').filter((word) => word !== '');
    const given = Object.fromEntries(new URLSearchParams(queryOf(wanted)));
    const meta =
      payment === null ? { 'percall/rail': surface === 'paid' ? 'usdc' : 'lightning' } : { 'x402/payment': payment };
    const params = { name: ['paid', ...words].join('_'), arguments: given, _meta: meta };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    return { method: 'POST', url: '/mcp', headers: MCP_HEADERS, from, body };
  }

  async function send(sent: ClientRequest, { at, abandonMs = null }: Way): Promise<Received> {
    const { received, abandon } = instanceOf(at).call(sent);
    open.add(sent);
    if (abandonMs !== null) setTimeout(abandon, abandonMs);
    return received.finally(() => open.delete(sent));
  }

  async function sendAndNote(presentation: Presentation, way: Way): Promise<Presentation> {
    presentation.received = await send(presentation.request, way);
    return presentation;
  }

  const identified = (identifier: string | null): object =>
    identifier === null ? {} : { extensions: { 'payment-identifier': { info: { required: false, id: identifier } } } };

  function payloadOf({ authorization, accepted, identifier, shouted = false }: Payment): object {
    const { terms, signature } = authorization;
    const spell = (hex: Hex): string => (shouted ? `0x${hex.slice(2).toUpperCase()}` : hex);
    const fields = {
      from: spell(terms.from),
      to: spell(terms.to),
      value: String(terms.value),
      nonce: spell(terms.nonce),
      validAfter: String(terms.validAfter),
      validBefore: String(terms.validBefore),
    };
    const payload = { signature: toHex(signature), authorization: fields };
    return { x402Version: 2, accepted, payload, ...identified(identifier) };
  }

  return {
    requirement,
    presentChannel(order: ChannelOrder, way: Way): Promise<Presentation> {
      const { by, route, tag, voucher, deposit, units, authorization, identifier } = order;
      const payload = channelPayload(voucher, deposit, units);
      const accepted = channelRequirement(route);
      const sent = request(order, way, 'paid', { x402Version: 2, accepted, payload, ...identified(identifier) });
      const asked = voucher.kind === 'refund' ? 'a refund' : askedOf(order);
      const given = { by, route, tag, asked, authorization, voucher, identifier, paymentHash: null };
      return sendAndNote(book.add({ ...given, rail: 'channels', at: way.at, request: sent }), way);
    },
    /** A request without a payment, and what was offered for it; null where no answer came. */
    ask: async (wanted: Wanted, way: Way, rail: Rail): Promise<Reported | null> => {
      const sent = request(wanted, way, rail === 'lightning' ? 'lightning' : 'paid', null);
      const received = await send(sent, way);
      return 'broken' in received ? null : readAny(sent, received, world.scheduler.nowMs());
    },
    send,
    present(payment: Payment, wish: Way): Promise<Presentation> {
      // Two ledgers for one relayer's seller are a configuration that the service forbids; over the Gateway they are not.
      const way = payment.authorization.rail === 'usdc' && wish.at === 'twin' ? { ...wish, at: 'a' } : wish;
      const { by, route, tag, authorization, identifier } = payment;
      const sent = request(payment, way, 'paid', payloadOf(payment));
      const asked = askedOf(payment);
      // Where the Gateway is not offered, what is signed for it is judged as a plain payment.
      const rail = world.scenario.gateway ? authorization.rail : 'usdc';
      const given = {
        by,
        route,
        tag,
        asked,
        authorization: { ...authorization, rail },
        identifier,
        paymentHash: null,
        rail,
      };
      return sendAndNote(book.add({ ...given, at: way.at, request: sent }), way);
    },
    presentProof(proof: Proof, way: Way): Promise<Presentation> {
      const { by, route, tag, accepted, preimage, paymentHash } = proof;
      const sent = request(proof, way, 'lightning', { x402Version: 2, accepted, payload: { preimage } });
      const given = {
        by,
        route,
        tag,
        asked: `lightning ${sent.url} ${sent.body ?? ''}`,
        authorization: null,
        identifier: null,
      };
      return sendAndNote(book.add({ ...given, paymentHash, rail: 'lightning', at: way.at, request: sent }), way);
    },
    /** The facilitator's route: claims a proof for somebody else's request. */
    claim: (accepted: Requirement, preimage: string, way: Way): Promise<Received> => {
      const paymentPayload = { x402Version: 2, accepted, payload: { preimage } };
      const body = JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: accepted });
      const headers = { 'content-type': 'application/json' };
      return send({ method: 'POST', url: '/facilitator/settle', headers, from: way.from, body }, way);
    },
    /** The same request once more, byte for byte, from the same client. */
    repeat: (before: Presentation, way: Way): Promise<Presentation> =>
      sendAndNote(book.add({ ...before, at: way.at, request: { ...before.request, from: way.from } }), way),
    /** The requests that have no answer yet, each with its method and path. */
    unanswered: (): string[] => [...open].map(({ method, url }) => `${method} ${url}`),
  };
}

export type Desk = ReturnType<typeof createDesk>;
