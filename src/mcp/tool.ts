import type { CallToolResult, Tool as Listed } from '@modelcontextprotocol/sdk/types.js';

/** One `tools/call`, and what is known of who makes it. */
export interface ToolCall {
  /** As they came: an object, or undefined where they were left out. */
  readonly arguments: unknown;
  readonly meta: unknown;
  /** The client as rate limits see it. */
  readonly client: string;
  /** What tells it from all others on redelivery. */
  readonly identity: string;
  readonly requestId: string;
  /** Aborts when the caller's connection is gone. */
  readonly signal: AbortSignal;
  /** Registers what is to be done once the last byte of the answer has left. */
  onSent(done: () => Promise<void>): void;
}

/** A tool: how it is listed, whose limit its calls count against, and what a call does. `run` throws AppErrors; anything else is a bug. */
export interface Tool {
  readonly listed: Listed;
  readonly group: 'free' | 'priced';
  run(call: ToolCall): Promise<CallToolResult>;
}
