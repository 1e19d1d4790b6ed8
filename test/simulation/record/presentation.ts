import type { Route } from '../service/catalogue.ts';
import type { ClientAnswer, ClientRequest, Received } from '../service/instance.ts';
import type { ChannelConfig } from '../world/chain/channel-terms.ts';
import type { Hex } from '../world/chain/keys.ts';
import type { Terms } from '../world/chain/token.ts';

/** How a payment's money moves. */
export type Rail = 'usdc' | 'gateway' | 'lightning' | 'channels';

/** An authorization with everything that makes it what it is. */
export interface Authorization {
  /** `channels`: a deposit, which pays into a channel. */
  readonly rail: 'usdc' | 'gateway' | 'channels';
  readonly terms: Terms;
  readonly signature: Buffer;
}

/** A voucher, with the channel that it is for. */
export interface Voucher {
  readonly kind: 'voucher' | 'deposit' | 'refund';
  readonly config: ChannelConfig;
  /** As the client says it. */
  readonly channelId: Hex;
  readonly max: bigint;
  readonly signature: Buffer;
}

/** What an answer said, in whatever form it came. */
export interface Reported {
  readonly atMs: number;
  readonly status: number;
  /** A problem's code, or a refusal's reason. */
  readonly code: string;
  /** What it said of the money: a 402 says that none moved for this request. */
  readonly charged: 'yes' | 'no' | 'unknown';
  readonly retryAfterSeconds: number;
  /** The sold bytes; empty unless something was sold. */
  readonly body: string;
  readonly transaction: string;
  readonly offer: Offer | null;
  /** A receipt's `extra`; of a channel it tells its state. */
  readonly receiptExtra: Readonly<Record<string, unknown>>;
}

/** What a 402 asks for. */
export interface Requirement {
  readonly scheme: string;
  readonly network: string;
  readonly amount: string;
  readonly asset: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface Offer {
  /** Read when it is asked for: most are not. */
  accepts(): readonly Requirement[];
}

/** One request with a payment attached, and what became of it. */
export interface Presentation {
  readonly number: number;
  /** Who presents: an actor's name. */
  readonly by: string;
  readonly atMs: number;
  readonly request: ClientRequest;
  /** To which instance it was sent. */
  readonly at: string;
  readonly route: Route;
  readonly tag: string;
  /** Names the request: the route with its parameters, whatever its spelling. */
  readonly asked: string;
  readonly rail: Rail;
  readonly authorization: Authorization | null;
  /** Of a payment from a channel, and of a deposit into one. */
  readonly voucher?: Voucher;
  /** Of a Lightning proof, in hex. */
  readonly paymentHash: string | null;
  readonly identifier: string | null;
  /** When the answer left the service, and what it was; null while there is none. */
  reported: Reported | null;
  received: Received | null;
}

/** The name under which an authorization is known: whatever else of it changes, its payer's nonce pays once. */
export const keyOf = ({ rail, terms }: Pick<Authorization, 'rail' | 'terms'>): string =>
  `${rail} ${terms.from} ${terms.nonce}`;
export const nonceKey = (rail: Rail, from: Hex, nonce: Hex): string => `${rail} ${from} ${nonce}`;

/** The name of a voucher: whatever else of it changes, one ceiling of one channel buys one answer. */
export const voucherKey = (channelId: Hex, max: bigint): string => `voucher ${channelId} ${max}`;

/** The names under which a presentation is known. A deposit with its voucher has two. */
function keysOf({ authorization, voucher, paymentHash }: Given): string[] {
  const keys = voucher ? [voucherKey(voucher.channelId, voucher.max)] : [];
  if (authorization) keys.push(keyOf(authorization));
  return keys.length > 0 ? keys : [`lightning ${paymentHash}`];
}

type Given = Omit<Presentation, 'number' | 'atMs' | 'reported' | 'received'>;

/** Everything that was presented, and what was answered. */
export function createBook(nowMs: () => number) {
  const presentations: Presentation[] = [];
  const byRequest = new Map<ClientRequest, Presentation>();
  const byKey = new Map<string, Presentation[]>();
  const listeners: ((presentation: Presentation) => void)[] = [];

  return {
    presentations: (): readonly Presentation[] => presentations,
    /** Those of one payment. */
    of: (key: string): readonly Presentation[] => byKey.get(key) ?? [],
    add(given: Given): Presentation {
      const made: Presentation = {
        ...given,
        number: presentations.length,
        atMs: nowMs(),
        reported: null,
        received: null,
      };
      presentations.push(made);
      byRequest.set(given.request, made);
      for (const key of keysOf(given)) byKey.set(key, [...(byKey.get(key) ?? []), made]);
      return made;
    },
    /** Calls back with every presentation whose answer leaves. */
    onAnswered: (listener: (presentation: Presentation) => void) => void listeners.push(listener),
    answered(request: ClientRequest, reported: Reported): Presentation | null {
      const found = byRequest.get(request) ?? null;
      if (!found) return null;
      found.reported = reported;
      for (const listener of listeners) listener(found);
      return found;
    },
  };
}

function decoded(text: string | undefined): Record<string, unknown> | null {
  // Most answers lack the header, and an error for each would cost more than all that are read.
  if (text === undefined) return null;
  try {
    return JSON.parse(Buffer.from(text, 'base64').toString('utf8')) as Record<string, unknown>;
  } catch {
    return null;
  }
}

function parsed(body: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Reads an answer of a priced route. */
function readAnswer({ status, headers, body }: ClientAnswer, atMs: number): Reported {
  const required = headers['payment-required'];
  const receipt = decoded(headers['payment-response']);
  const problem = status >= 400 && status !== 402 ? parsed(body) : {};
  const retryAfterSeconds = Number(headers['retry-after'] ?? 0);
  return {
    atMs,
    status,
    retryAfterSeconds,
    transaction: String(receipt?.transaction ?? ''),
    receiptExtra: (receipt?.extra ?? {}) as Record<string, unknown>,
    code: String(problem.code ?? errorIn(required)),
    charged: chargedOf(status, problem.charged),
    body: status === 200 ? body : '',
    offer: required === undefined ? null : { accepts: () => (decoded(required)?.accepts ?? []) as Requirement[] },
  };
}

/** The reason in a challenge: it stands before what is long. */
function errorIn(required: string | undefined): string {
  const head = Buffer.from((required ?? '').slice(0, 400), 'base64').toString('utf8');
  return /"error":"([^"]*)"/.exec(head)?.[1] ?? '';
}

interface ToolResult {
  isError?: boolean;
  content?: { text?: string }[];
  structuredContent?: Record<string, unknown>;
  _meta?: Record<string, { transaction?: unknown; extra?: Record<string, unknown> }>;
}

/** The same of a priced tool, whose failures are results like any other. */
function readToolAnswer(answer: ClientAnswer, atMs: number): Reported {
  const result = (parsed(answer.body).result ?? {}) as ToolResult;
  const reported = result.structuredContent ?? {};
  const isOffer = reported.x402Version !== undefined;
  const status =
    answer.status !== 200 ? answer.status : !result.isError ? 200 : isOffer ? 402 : Number(reported.status ?? 500);
  return {
    atMs,
    status,
    retryAfterSeconds: Number(reported.retryAfterSeconds ?? 0),
    code: String((isOffer ? reported.error : reported.code) ?? ''),
    charged: chargedOf(status, reported.charged),
    body: status === 200 ? (result.content?.[0]?.text ?? '') : '',
    transaction: String(result._meta?.['x402/payment-response']?.transaction ?? ''),
    receiptExtra: result._meta?.['x402/payment-response']?.extra ?? {},
    offer: isOffer ? { accepts: () => (reported.accepts ?? []) as Requirement[] } : null,
  };
}

/** Reads an answer in the form in which it was asked for. */
export function readAny(request: ClientRequest, answer: ClientAnswer, atMs: number): Reported {
  return request.url === '/mcp' ? readToolAnswer(answer, atMs) : readAnswer(answer, atMs);
}

function chargedOf(status: number, said: unknown): Reported['charged'] {
  if (status === 200) return 'yes';
  if (status === 402 || said === false) return 'no';
  return 'unknown';
}
