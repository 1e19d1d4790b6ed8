import type { CallToolResult, Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { AppError, BadParameter } from '../errors.ts';
import { anyMembers, defineRoute, inJson, type Route, serve } from '../http/openapi/route.ts';
import { asAppError } from '../http/problems.ts';
import { rateLimited, rateLimitHeaders } from '../http/rate-limit.ts';
import type { Log } from '../lib/common.ts';
import { type ClientWindows, clientKey, countClient, identityOf, type MinuteWindows } from '../lib/limits/count.ts';
import { jsonOrUndefined, own } from '../lib/untrusted.ts';
import { clientGone } from '../payment/checkout.ts';
import { closeSignal, noteDelivery } from '../payment/gate.ts';
import type { answerMessage } from './answer-message.ts';
import { instructionsFor } from './listing.ts';
import { problem } from './results.ts';
import {
  LIGHTNING_ADDRESS,
  MAIN_ADDRESS,
  PAYMENT,
  RECEIPT,
  type Tool,
  type ToolAddress,
  type ToolCall,
} from './tool.ts';
import { createTools, type ToolsDeps } from './tools.ts';

// The tools server at its addresses. A message's origin, form and size are checked, it counts against the limit of its
// tool's group, and the SDK answers it (`answer-message.ts`). A tool's failure is a result too.

const MAX_BODY_BYTES = 64 * 1024;
const READ_HEADERS = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-session-id'];

const FOREIGN = new AppError(
  403,
  'origin_not_allowed',
  'This Origin header is not one that a page of another site sends.',
);
const BATCH = new AppError(
  400,
  'batch_not_supported',
  'Send one JSON-RPC message a request: a payment belongs to one call.',
);

/** Members and items of a message, without a call's arguments. A payment has some dozens. */
const MOST_MEMBERS = 1000;
const TOO_MANY_MEMBERS = new AppError(
  400,
  'too_many_members',
  `A message may have at most ${MOST_MEMBERS} members beside the arguments of a call.`,
);

/** Loads the SDK at the first message: it is a twentieth of a start's work, and many services never get one. */
const answer: typeof answerMessage = async (...message) =>
  (await import('./answer-message.ts')).answerMessage(...message);

/** MCP defines the content of its messages. */
const declared = ({ path }: ToolAddress, id: string, summary: string) =>
  defineRoute('POST', path, {
    id,
    tag: 'meta',
    summary,
    description:
      'A `paid_…` tool without payment returns `isError`, a sentence with the price, and x402\u2019s ' +
      'PaymentRequired; repeat the call with the payload in `_meta["x402/payment"]`, the receipt is in ' +
      '`_meta["x402/payment-response"]`.',
    query: z.object({
      schemas: z.enum(['full']).optional().meta({ description: 'Lists the schemas of the answers too' }),
    }),
    body: anyMembers.meta({
      description: 'One JSON-RPC 2.0 message',
      examples: [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    }),
    answers: {
      200: inJson(anyMembers, 'One JSON-RPC 2.0 message'),
      202: { description: 'A notification was taken' },
      400: inJson(anyMembers, 'No JSON-RPC message, or several'),
      429: inJson(anyMembers, 'Too many messages'),
    },
  });

const MAIN = 'Every route as a tool, over MCP (streamable HTTP, stateless); priced ones in USDC.';
const LIGHTNING = 'The same, with the tools that bitcoin buys: an unpaid call is offered an invoice.';
const PLACES = [
  [declared(MAIN_ADDRESS, 'mcp', MAIN), MAIN_ADDRESS],
  [declared(LIGHTNING_ADDRESS, 'mcpLightning', LIGHTNING), LIGHTNING_ADDRESS],
] as const;
type Place = (typeof PLACES)[number];
export const TOOL_ROUTES: readonly Route[] = PLACES.map(([route]) => route);

export interface McpDeps<S> extends ToolsDeps<S> {
  readonly limits: CallLimits;
  readonly log: Log;
}

/** Without `tools` it mounts nothing. It counts its calls itself. The first message makes the tools, a slow step. */
export async function toolRoutes<S>(app: FastifyInstance, { tools: deps }: { tools?: McpDeps<S> }): Promise<void> {
  if (deps === undefined) return;
  let all: ReturnType<typeof createTools> | null = null;
  const toolsNow = () => {
    all ??= createTools(deps);
    return all;
  };
  for (const place of PLACES) mountAddress(app, deps, place, () => createToolList(toolsNow(), place[1]));
}

interface ToolList {
  readonly tools: ReadonlyMap<string, Tool>;
  /** Each list is made once. `full` lists the schemas of the answers too, which make it more than six times as long. */
  listed(full: boolean): readonly Listed[];
  /** How many times as long as the short list the full one is, rounded up. Asking for it counts as so many calls. */
  weightOfFull(): number;
}

export function createToolList(all: ReadonlyMap<string, Tool>, address: ToolAddress): ToolList {
  const offered = [...all].flatMap(([name, tool]) => {
    const listed = tool.listedAt(address);
    return listed ? [{ name, tool, listed }] : [];
  });
  const short = offered.map(({ listed }) => listed);
  let full: readonly Listed[] | null = null;
  let weight: number | null = null;
  const fullNow = (): readonly Listed[] => {
    full ??= offered.map(({ tool, listed }) => ({ ...listed, outputSchema: tool.outputSchema() }));
    return full;
  };
  return {
    tools: new Map(offered.map(({ name, tool }) => [name, tool])),
    listed: (isFull) => (isFull ? fullNow() : short),
    weightOfFull() {
      weight ??= Math.ceil(JSON.stringify(fullNow()).length / JSON.stringify(short).length);
      return weight;
    },
  };
}

function mountAddress<S>(app: FastifyInstance, deps: McpDeps<S>, [route, address]: Place, make: () => ToolList): void {
  let list: ToolList | null = null;
  const instructions = instructionsFor(deps.chain, deps.publicOrigin, address);

  async function handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const isFull = wantsSchemas(request.query);
    const text = String(request.body ?? '');
    // Of text that is no JSON, the transport answers the error.
    const message = jsonOrUndefined(text);
    if (Array.isArray(message)) throw BATCH;
    const envelope = withoutArguments(message);
    if (hasTooMany(envelope)) throw TOO_MANY_MEMBERS;
    list ??= make();
    const { tools, listed, weightOfFull } = list;
    const tool = calledTool(message, tools);
    const client = clientKey(request.ip);
    const isPaid = own(own(own(message, 'params'), '_meta'), PAYMENT) !== undefined;
    const weight = isFull && own(message, 'method') === 'tools/list' ? weightOfFull() : 1;
    const { headers, refusal } = countCall(deps.limits[tool?.group ?? 'free'], client, isPaid, weight);
    reply.headers(headers);
    if (refusal && !tool) throw refusal;
    const delivered: (() => Promise<void>)[] = [];
    const call = readCall(message, address, request, reply, (done) => void delivered.push(done));
    const respond = (asked: Tool) => (refusal ? Promise.reject(refusal) : asked.run(call));
    const toolbox = {
      instructions,
      listed: () => listed(isFull),
      call: (name: string) => {
        const asked = tools.get(name);
        return asked ? answerCall(name, call, deps.log, () => respond(asked)) : null;
      },
    };
    const response = await answer(webRequest(request, text), envelope, toolbox);
    for (const onSent of delivered) noteDelivery(reply, { onSent }, deps.log);
    return send(reply, response);
  }

  // Encapsulated, because its bodies are read unparsed.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    serve(scope, route, {
      bodyLimit: MAX_BODY_BYTES,
      onRequest: async ({ headers }) => {
        if (!mayCallFrom(headers.origin, headers.host, deps.publicOrigin)) throw FOREIGN;
      },
      handler: handle,
    });
  });
}

/** DNS rebinding cannot produce these names: this machine itself serves a page under one of them. */
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * MCP requires this check against DNS rebinding. Pages of every site may call: no cookie or network position gives them
 * anything. Refused: opaque or malformed origins, and one that equals the Host but not our address.
 */
export function mayCallFrom(origin: string | undefined, host: string | undefined, publicOrigin: string): boolean {
  if (origin === undefined) return true;
  if (!/^https?:\/\/[^/?#\s]+$/i.test(origin) || !URL.canParse(origin)) return false;
  const from = new URL(origin);
  if (LOOPBACK.has(from.hostname) || from.host === new URL(publicOrigin).host) return true;
  return from.host !== host?.toLowerCase();
}

/** `?schemas=full` asks for the schemas of the answers. Throws BadParameter for another value. */
function wantsSchemas(query: unknown): boolean {
  const asked = own(query, 'schemas');
  if (asked === undefined) return false;
  if (asked === 'full') return true;
  throw new BadParameter([{ path: 'schemas', message: 'must be "full", or absent' }]);
}

/** For the SDK, whose schemas read a member up to three times: 7,000 arguments took 20 ms. It refuses non-objects. */
function withoutArguments(message: unknown): unknown {
  const params = own(message, 'params');
  const given = own(params, 'arguments');
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return message;
  return { ...(message as object), params: { ...(params as object), arguments: {} } };
}

/** Counts members and items at every depth together, and stops at the limit. */
function hasTooMany(message: unknown): boolean {
  const found = [message];
  for (const value of found) {
    if (typeof value !== 'object' || value === null) continue;
    found.push(...Object.values(value).slice(0, MOST_MEMBERS + 1));
    if (found.length > MOST_MEMBERS + 1) return true;
  }
  return false;
}

function calledTool(message: unknown, tools: ReadonlyMap<string, Tool>): Tool | undefined {
  if (own(message, 'method') !== 'tools/call') return undefined;
  const name = own(own(message, 'params'), 'name');
  return typeof name === 'string' ? tools.get(name) : undefined;
}

/** The limit of a client, four times as high for an IPv6 /48; 0 is off. */
interface CallLimit {
  readonly perMinute: number;
  readonly windows: ClientWindows<MinuteWindows>;
}

type CallLimits = Readonly<Record<Tool['group'], CallLimit>>;

interface Counted {
  readonly headers: Readonly<Record<string, string>>;
  readonly refusal: AppError | null;
}

/** Counts a message as `weight` calls, with the routes' numbers, headers and texts. `isPaid`: it carries a payment. */
export function countCall({ perMinute, windows }: CallLimit, client: string, isPaid: boolean, weight = 1): Counted {
  if (perMinute === 0) return { headers: {}, refusal: null };
  let standing = countClient(perMinute, windows, client);
  for (let counted = 1; counted < weight; counted += 1) standing = countClient(perMinute, windows, client);
  return { headers: rateLimitHeaders(standing), refusal: standing.left < 0 ? rateLimited(standing, isPaid) : null };
}

/** Arguments and `_meta` are not judged yet. */
function readCall(
  message: unknown,
  address: ToolAddress,
  request: FastifyRequest,
  reply: FastifyReply,
  onSent: ToolCall['onSent'],
): ToolCall {
  const params = own(message, 'params');
  return {
    address,
    // As received, because an invoice binds it: the SDK's copy drops members that it does not know.
    arguments: own(params, 'arguments'),
    meta: own(params, '_meta'),
    client: clientKey(request.ip),
    identity: identityOf(request),
    requestId: request.id,
    signal: leaveSignal(reply),
    onSent,
  };
}

/** Aborts when the caller leaves, also while the body was read: a caller that left must not be charged. */
function leaveSignal(reply: FastifyReply): AbortSignal {
  const { raw } = reply;
  return raw.destroyed || raw.closed ? AbortSignal.abort(clientGone()) : closeSignal(reply);
}

/** A failure becomes a result, because models read results, and many hosts hide protocol errors. */
async function answerCall(
  tool: string,
  { requestId }: ToolCall,
  log: Log,
  run: () => Promise<CallToolResult>,
): Promise<CallToolResult> {
  try {
    const result = await run();
    if (!result.isError && own(result._meta, RECEIPT) !== undefined) log.info({ requestId, tool }, 'sold');
    return result;
  } catch (error) {
    const failure = asAppError(error);
    const detail = { requestId, tool, code: failure.code, err: failure.cause };
    if (failure.code === 'internal') log.error(detail, 'a tool call failed on a bug');
    else if (failure.status >= 500) log.warn(detail, 'a tool call failed');
    return problem(failure, requestId);
  }
}

function webRequest({ headers }: FastifyRequest, body: string): Request {
  const read = READ_HEADERS.flatMap((name): [string, string][] => {
    const value = headers[name];
    return value === undefined ? [] : [[name, String(value)]];
  });
  // The transport looks at no part of the address.
  return new Request('http://localhost/mcp', { method: 'POST', headers: read, body });
}

async function send(reply: FastifyReply, response: Response): Promise<FastifyReply> {
  const type = response.headers.get('content-type');
  if (type !== null) reply.header('content-type', `${type}; charset=utf-8`);
  return reply
    .code(response.status)
    .header('cache-control', 'private, no-store')
    .send(await response.text());
}
