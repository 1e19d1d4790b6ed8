import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../errors.ts';
import { clientKey } from '../lib/limits/client-key.ts';
import { own } from '../lib/own-property.ts';
import type { answerMessage } from './answer-message.ts';
import { answerCall, type CallLog, readCall } from './call.ts';
import { DOORS, type Door } from './door.ts';
import { instructionsFor } from './instructions.ts';
import { type CallLimits, countCall } from './limits.ts';
import { PAYMENT } from './meta.ts';
import { mayCallFrom } from './origin.ts';
import { createShelf, type Shelf, wantsSchemas } from './shelf.ts';
import type { Tool } from './tool.ts';
import { createTools, type ToolsDeps } from './tools.ts';

const MAX_BODY_BYTES = 64 * 1024;
/** The request headers that the transport reads. */
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

/** Answers through the SDK, which is loaded at the first message: it is a twentieth of a start's work, and many services never get a message. */
const answer: typeof answerMessage = async (...message) =>
  (await import('./answer-message.ts')).answerMessage(...message);

/** The dependencies of the tools server. */
export interface McpDeps<S> extends ToolsDeps<S> {
  readonly limits: CallLimits;
  readonly log: CallLog;
}

/**
 * Mounts the tools server at each of its addresses. It counts its own calls, so mount it outside the rate-limited groups. The tools are made at the first
 * message: at the start, their schemas took a fiftieth of its processor time.
 */
export function mountMcp<S>(app: FastifyInstance, deps: McpDeps<S>): void {
  let all: ReturnType<typeof createTools> | null = null;
  const toolsNow = () => {
    all ??= createTools(deps);
    return all;
  };
  for (const door of DOORS) mountDoor(app, deps, door, () => createShelf(toolsNow(), door));
}

function mountDoor<S>(app: FastifyInstance, deps: McpDeps<S>, door: Door, stock: () => Shelf): void {
  let shelf: Shelf | null = null;
  const url = door.path;
  const instructions = instructionsFor(deps.chain, deps.publicOrigin, door);

  async function handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const isFull = wantsSchemas(request.query);
    const text = String(request.body ?? '');
    const message = parseJson(text);
    if (Array.isArray(message)) throw BATCH;
    const envelope = withoutArguments(message);
    if (hasTooMany(envelope)) throw TOO_MANY_MEMBERS;
    shelf ??= stock();
    const { tools, listed, weightOfFull } = shelf;
    const tool = calledTool(message, tools);
    const client = clientKey(request.ip);
    const isPaid = own(own(own(message, 'params'), '_meta'), PAYMENT) !== undefined;
    const weight = isFull && own(message, 'method') === 'tools/list' ? weightOfFull() : 1;
    const { headers, refusal } = countCall(deps.limits[tool?.group ?? 'free'], client, isPaid, weight);
    reply.headers(headers);
    if (refusal && !tool) throw refusal;
    const call = readCall(message, door, request, reply, deps.log);
    const respond = (asked: Tool) => (refusal ? Promise.reject(refusal) : asked.run(call));
    const toolbox = {
      instructions,
      listed: () => listed(isFull),
      call: (name: string) => {
        const asked = tools.get(name);
        return asked ? answerCall(name, call, deps.log, () => respond(asked)) : null;
      },
    };
    return send(reply, await answer(webRequest(request, text), envelope, toolbox));
  }

  // Encapsulated, because its bodies are read unparsed.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    scope.route({
      method: 'POST',
      url,
      bodyLimit: MAX_BODY_BYTES,
      onRequest: async ({ headers }) => {
        if (!mayCallFrom(headers.origin, headers.host, deps.publicOrigin)) throw FOREIGN;
      },
      handler: handle,
    });
  });
}

/** The tool that a message calls; undefined when it calls none of ours. */
function calledTool(message: unknown, tools: ReadonlyMap<string, Tool>): Tool | undefined {
  if (own(message, 'method') !== 'tools/call') return undefined;
  const name = own(own(message, 'params'), 'name');
  return typeof name === 'string' ? tools.get(name) : undefined;
}

/** Undefined when the text is not JSON. The transport then answers the error. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * A message for the SDK, whose schemas read each member of it up to three times: 7,000 arguments took 20 ms. The tool
 * reads its arguments from the message itself. Arguments that are no object stay, because the SDK refuses them.
 */
function withoutArguments(message: unknown): unknown {
  const params = own(message, 'params');
  const given = own(params, 'arguments');
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return message;
  return { ...(message as object), params: { ...(params as object), arguments: {} } };
}

/**
 * Whether a message has more members and items, at every depth together, than one may have. It looks no further than
 * that.
 */
function hasTooMany(message: unknown): boolean {
  const found = [message];
  for (const value of found) {
    if (typeof value !== 'object' || value === null) continue;
    found.push(...Object.values(value).slice(0, MOST_MEMBERS + 1));
    if (found.length > MOST_MEMBERS + 1) return true;
  }
  return false;
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
