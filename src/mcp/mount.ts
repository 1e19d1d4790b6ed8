import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../errors.ts';
import { asAppError } from '../http/framework-errors.ts';
import { refuseOtherMethods } from '../http/methods.ts';
import { identityOf } from '../lib/limits/client-identity.ts';
import { clientKey } from '../lib/limits/client-key.ts';
import { own } from '../lib/own-property.ts';
import { closeSignal } from '../payment/close-signal.ts';
import { clientGone } from '../payment/run-endpoint.ts';
import { answerMessage } from './answer-message.ts';
import { type CallLimits, countCall } from './limits.ts';
import { PAYMENT, RECEIPT } from './meta.ts';
import { mayCallFrom } from './origin.ts';
import { problem } from './results.ts';
import type { Tool, ToolCall } from './tool.ts';
import { createTools, type ToolsDeps } from './tools.ts';

/** Where the tools server stands: what Lightning invoices of tool calls bind. */
const MCP_PATH = '/mcp';
const MAX_BODY_BYTES = 64 * 1024;
/** What the transport reads of a request's head. */
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

/** What the tools server is built from. */
export interface McpDeps<S> extends ToolsDeps<S> {
  readonly limits: CallLimits;
  readonly log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

/** Mounts the tools server. It counts its own calls, so it belongs outside the groups that are limited otherwise. */
export function mountMcp<S>(app: FastifyInstance, deps: McpDeps<S>): void {
  const tools = createTools(deps);
  const listed = [...tools.values()].map((tool) => tool.listed);
  const url = MCP_PATH;

  async function handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const text = String(request.body ?? '');
    const message = parseJson(text);
    if (Array.isArray(message)) throw BATCH;
    const tool = calledTool(message, tools);
    const client = clientKey(request.ip);
    const isPaid = own(own(own(message, 'params'), '_meta'), PAYMENT) !== undefined;
    const { headers, refusal } = countCall(deps.limits[tool?.group ?? 'free'], client, isPaid);
    reply.headers(headers);
    if (refusal && !tool) throw refusal;
    const call = readCall(message, request, reply);
    const respond = (asked: Tool) => (refusal ? Promise.reject(refusal) : asked.run(call));
    const toolbox = {
      listed,
      call: (name: string) => {
        const asked = tools.get(name);
        return asked ? answerCall(name, call, () => respond(asked)) : null;
      },
    };
    return send(reply, await answerMessage(webRequest(request, text), message, toolbox));
  }

  function readCall(message: unknown, request: FastifyRequest, reply: FastifyReply): ToolCall {
    const params = own(message, 'params');
    return {
      // Of the message as it came: the SDK's copy lacks what it does not like, and an invoice binds what was sent.
      arguments: own(params, 'arguments'),
      meta: own(params, '_meta'),
      client: clientKey(request.ip),
      identity: identityOf(request),
      requestId: request.id,
      signal: leaveSignal(reply),
      onSent: (done) => {
        reply.raw.once('finish', () => {
          // Not noted: the proof stays redeemable for longer, which harms nobody.
          done().catch((err) => deps.log.error({ err }, 'a delivery was not noted'));
        });
      },
    };
  }

  /** A failure of a tool is its answer, never the protocol's: models read the one and hosts swallow the other. */
  async function answerCall(tool: string, call: ToolCall, run: () => Promise<CallToolResult>): Promise<CallToolResult> {
    const { requestId } = call;
    try {
      const result = await run();
      if (!result.isError && own(result._meta, RECEIPT) !== undefined) deps.log.info({ requestId, tool }, 'sold');
      return result;
    } catch (error) {
      const failure = asAppError(error);
      const detail = { requestId, tool, code: failure.code, err: failure.cause };
      if (failure.code === 'internal') deps.log.error(detail, 'a tool call failed on a bug');
      else if (failure.status >= 500) deps.log.warn(detail, 'a tool call failed');
      return problem(failure, requestId);
    }
  }

  // A scope of its own, because its bodies are read as they are.
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
  refuseOtherMethods(app, url, ['POST']);
}

/** The tool that a message calls, if it calls one that is there. */
function calledTool(message: unknown, tools: ReadonlyMap<string, Tool>): Tool | undefined {
  if (own(message, 'method') !== 'tools/call') return undefined;
  const name = own(own(message, 'params'), 'name');
  return typeof name === 'string' ? tools.get(name) : undefined;
}

/** Undefined for what is no JSON: the transport says so then. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A body takes time to come, and who has left meanwhile must not be charged. */
function leaveSignal(reply: FastifyReply): AbortSignal {
  const { raw } = reply;
  return raw.destroyed || raw.closed ? AbortSignal.abort(clientGone()) : closeSignal(reply);
}

function webRequest({ headers }: FastifyRequest, body: string): Request {
  const read = READ_HEADERS.flatMap((name): [string, string][] => {
    const value = headers[name];
    return value === undefined ? [] : [[name, String(value)]];
  });
  // Only its path could matter, and there is one.
  return new Request(`http://localhost${MCP_PATH}`, { method: 'POST', headers: read, body });
}

async function send(reply: FastifyReply, response: Response): Promise<FastifyReply> {
  const type = response.headers.get('content-type');
  if (type !== null) reply.header('content-type', `${type}; charset=utf-8`);
  return reply
    .code(response.status)
    .header('cache-control', 'private, no-store')
    .send(await response.text());
}
