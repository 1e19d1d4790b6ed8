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
import type { answerMessage } from './answer-message.ts';
import { instructionsFor } from './instructions.ts';
import { type CallLimits, countCall } from './limits.ts';
import { PAYMENT, RECEIPT } from './meta.ts';
import { mayCallFrom } from './origin.ts';
import { problem } from './results.ts';
import type { Tool, ToolCall } from './tool.ts';
import { createTools, type ToolsDeps } from './tools.ts';

/** The path of the tools server. Lightning invoices of tool calls bind it. */
const MCP_PATH = '/mcp';
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

/** Answers through the SDK, which is loaded at the first message: it is a twentieth of a start's work, and many services never get a message. */
const answer: typeof answerMessage = async (...message) =>
  (await import('./answer-message.ts')).answerMessage(...message);

/** The dependencies of the tools server. */
export interface McpDeps<S> extends ToolsDeps<S> {
  readonly limits: CallLimits;
  readonly log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

/** Mounts the tools server. It counts its own calls, so mount it outside the rate-limited groups. */
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
      ...{ instructions: instructionsFor(deps.chain), listed },
      call: (name: string) => {
        const asked = tools.get(name);
        return asked ? answerCall(name, call, () => respond(asked)) : null;
      },
    };
    return send(reply, await answer(webRequest(request, text), message, toolbox));
  }

  function readCall(message: unknown, request: FastifyRequest, reply: FastifyReply): ToolCall {
    const params = own(message, 'params');
    return {
      // Taken from the message as it was received, because an invoice binds it. The SDK's copy drops members that it does not know.
      arguments: own(params, 'arguments'),
      meta: own(params, '_meta'),
      client: clientKey(request.ip),
      identity: identityOf(request),
      requestId: request.id,
      signal: leaveSignal(reply),
      onSent: (done) => {
        reply.raw.once('finish', () => {
          // Without the note the proof stays redeemable for longer, which does no harm.
          done().catch((err) => deps.log.error({ err }, 'a delivery was not noted'));
        });
      },
    };
  }

  /** Runs a tool. A tool's failure becomes a tool result, not a protocol error, because models read results and many hosts hide protocol errors. */
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
  refuseOtherMethods(app, url, ['POST']);
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

/** Aborts when the caller disconnects. Reading the body takes time, and a caller that disconnected meanwhile must not be charged. */
function leaveSignal(reply: FastifyReply): AbortSignal {
  const { raw } = reply;
  return raw.destroyed || raw.closed ? AbortSignal.abort(clientGone()) : closeSignal(reply);
}

function webRequest({ headers }: FastifyRequest, body: string): Request {
  const read = READ_HEADERS.flatMap((name): [string, string][] => {
    const value = headers[name];
    return value === undefined ? [] : [[name, String(value)]];
  });
  // The transport looks at the path alone, and there is one path.
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
