import { request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { AppError } from '../../../src/errors.ts';
import { problem } from '../../../src/mcp/results.ts';
import { LIGHTNING_ADDRESS, MAIN_ADDRESS, PAYMENT, RECEIPT, type Tool, type ToolCall } from '../../../src/mcp/tool.ts';
import { encodeHeader } from '../../../src/payment/protocols/x402/http.ts';

// The calls of the checkouts' world: one request and one answer, whether they go by HTTP or to a tool.

/** One way to call what is sold. */
export interface Way {
  readonly at: 'route' | 'tool';
  readonly money: 'usdc' | 'lightning';
}

export const USDC_ROUTE: Way = { at: 'route', money: 'usdc' };
export const LIGHTNING_ROUTE: Way = { at: 'route', money: 'lightning' };
export const USDC_TOOL: Way = { at: 'tool', money: 'usdc' };
export const LIGHTNING_TOOL: Way = { at: 'tool', money: 'lightning' };

/** For `test.each`: ways with their names. */
export function named(...ways: readonly Way[]): [name: string, way: Way][] {
  return ways.map((way) => [`a ${way.at} ${way.money === 'usdc' ? 'in USDC' : 'over Lightning'}`, way]);
}
export const WAYS = named(USDC_ROUTE, LIGHTNING_ROUTE, USDC_TOOL, LIGHTNING_TOOL);
/** Without the route in USDC, which names a fault beside its price. */
export const [, ...OTHER_WAYS] = WAYS;
export const ROUTES = named(USDC_ROUTE, LIGHTNING_ROUTE);

export const PATHS = { usdc: '/v1/paid/test/sold', lightning: '/v1/lightning/test/sold' } as const;
export const CLIENT = '127.0.0.1';
/** The parameters of a call that says no others. */
export const PARAMS = { a: '1', b: '2' };

export interface Request {
  readonly params?: unknown;
  /** As JSON: in PAYMENT-SIGNATURE, or in `_meta`. */
  readonly payment?: unknown;
  /** Of a route. `url`: the target, in place of its path and `params`. */
  readonly url?: string;
  readonly method?: 'GET' | 'HEAD' | 'POST';
  readonly headers?: Record<string, string>;
  readonly payload?: string;
  /** Of a tool. By default the address of Lightning where that is the way. */
  readonly address?: ToolCall['address'];
  readonly meta?: unknown;
  readonly signal?: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Of a problem. */
  readonly code?: string;
  readonly detail?: string;
  readonly charged?: boolean | 'unknown';
  /** Of a demand: why, what must be paid for what, and what it says to people or to models. */
  readonly error?: string;
  readonly accepts?: readonly Entry[];
  readonly url?: string | undefined;
  readonly words?: string;
  readonly receipt: unknown;
  readonly headers: Record<string, unknown>;
}

interface Entry {
  readonly scheme: string;
  readonly asset: string;
  readonly extra: Record<string, unknown>;
}

/** The message of a request to a route. */
export function messageTo({ money }: Way, request: Request) {
  const { params = PARAMS, payment, method = 'GET', headers = {}, payload } = request;
  const url = request.url ?? `${PATHS[money]}?${new URLSearchParams(params as Record<string, string>)}`;
  const paying = payment === undefined ? {} : { 'payment-signature': encodeHeader(payment) };
  return { method, url, headers: { ...paying, ...headers }, ...(payload !== undefined && { payload }) };
}

/** Calls routes and a tool. `events`: an answer leaves, and what is logged of a tool's delivery. */
export function createCaller(app: FastifyInstance, tool: Tool, events: string[]) {
  async function callRoute(way: Way, request: Request): Promise<Answer> {
    const { statusCode: status, body, headers } = await app.inject(messageTo(way, request));
    const challenge = decoded(headers['payment-required']);
    const json = body === '' ? {} : JSON.parse(body);
    const { error, accepts, resource } = challenge ?? {};
    const said = challenge ? { error, accepts, url: resource.url, words: json.hint ?? resource.description } : json;
    return { ...said, status, body, headers, receipt: decoded(headers['payment-response']) };
  }

  async function callTool({ money }: Way, request: Request): Promise<Answer> {
    const { params = PARAMS, payment, signal = new AbortController().signal } = request;
    const address = request.address ?? (money === 'lightning' ? LIGHTNING_ADDRESS : MAIN_ADDRESS);
    const meta = request.meta === undefined && payment !== undefined ? { [PAYMENT]: payment } : request.meta;
    const sent: (() => Promise<void>)[] = [];
    const by = { client: CLIENT, identity: CLIENT, requestId: 'r', signal };
    const result = await tool
      .run({ ...by, address, arguments: params, meta, onSent: (done) => void sent.push(done) })
      .catch((error: unknown) => problem(asAppError(error), 'r'));
    events.push('answered');
    for (const done of sent) await done().catch(() => void events.push('a delivery was not noted'));
    const data = (result.structuredContent ?? {}) as Partial<Answer> & { resource?: { url: string } };
    const [words = '', body = words] = result.content.map((part) => ('text' in part ? part.text : ''));
    const said = { ...data, url: data.resource?.url, words, body, receipt: result._meta?.[RECEIPT] ?? null };
    return { ...said, status: data.status ?? (result.isError ? 402 : 200), headers: {} };
  }

  return {
    call: (way: Way, request: Request = {}): Promise<Answer> =>
      (way.at === 'route' ? callRoute : callTool)(way, request),
    /** Begins a call. Returns how to leave it. */
    begin: async (way: Way, request: Request): Promise<() => void> => {
      if (way.at === 'tool') {
        const leaving = new AbortController();
        void callTool(way, { ...request, signal: leaving.signal });
        return () => leaving.abort(new AppError(499, 'client_gone', 'the caller has left'));
      }
      await app.listen({ port: 0, host: CLIENT });
      const { url: path, headers } = messageTo(way, request);
      const { port } = app.server.address() as AddressInfo;
      const begun = httpRequest({ port, host: CLIENT, path, headers }).on('error', () => {});
      begun.end();
      return () => void begun.destroy();
    },
  };
}

function decoded(header: unknown) {
  return header === undefined ? null : JSON.parse(Buffer.from(String(header), 'base64').toString());
}

/** As the service answers an error. */
export function asAppError(error: unknown): AppError {
  return error instanceof AppError ? error : new AppError(500, 'internal', String(error));
}
