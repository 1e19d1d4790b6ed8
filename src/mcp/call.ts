import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asAppError } from '../http/framework-errors.ts';
import { identityOf } from '../lib/limits/client-identity.ts';
import { clientKey } from '../lib/limits/client-key.ts';
import { own } from '../lib/own-property.ts';
import { closeSignal } from '../payment/close-signal.ts';
import { clientGone } from '../payment/run-endpoint.ts';
import type { Door } from './door.ts';
import { RECEIPT } from './meta.ts';
import { problem } from './results.ts';
import type { ToolCall } from './tool.ts';

/** Where sales and failures are written. */
export interface CallLog {
  info(detail: object, message: string): void;
  warn(detail: object, message: string): void;
  error(detail: object, message: string): void;
}

/** What a tool gets of a message. Arguments and `_meta` are not judged yet. */
export function readCall(
  message: unknown,
  door: Door,
  request: FastifyRequest,
  reply: FastifyReply,
  log: CallLog,
): ToolCall {
  const params = own(message, 'params');
  return {
    door,
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
        done().catch((err) => log.error({ err }, 'a delivery was not noted'));
      });
    },
  };
}

/** Runs a tool. A tool's failure becomes a tool result, not a protocol error, because models read results and many hosts hide protocol errors. */
export async function answerCall(
  tool: string,
  { requestId }: ToolCall,
  log: CallLog,
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

/** Aborts when the caller disconnects. Reading the body takes time, and a caller that disconnected meanwhile must not be charged. */
function leaveSignal(reply: FastifyReply): AbortSignal {
  const { raw } = reply;
  return raw.destroyed || raw.closed ? AbortSignal.abort(clientGone()) : closeSignal(reply);
}
