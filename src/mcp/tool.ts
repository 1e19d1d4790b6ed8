import type { CallToolResult, Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import type { Door } from './door.ts';

/** One `tools/call` and its caller. */
export interface ToolCall {
  /** The address at which it came in. */
  readonly door: Door;
  /** As received: an object, or undefined when absent. */
  readonly arguments: unknown;
  readonly meta: unknown;
  /** The client key of the rate limits. */
  readonly client: string;
  /** The value that proves on redelivery that the same client asks. */
  readonly identity: string;
  readonly requestId: string;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Registers a task to run after the last byte of the answer was sent. */
  onSent(done: () => Promise<void>): void;
}

/** A tool: its listing, the rate limit that its calls count against, and its `run`. `run` throws AppErrors; any other thrown value is a bug. */
export interface Tool {
  readonly name: string;
  readonly group: 'free' | 'priced';
  /** What an address lists, without the schema of the answer. Null where the address does not offer the tool. */
  listedAt(door: Door): Listed | null;
  /** JSON Schema of `structuredContent`. Made for each call, because few clients ask for it and it is long. */
  outputSchema(): NonNullable<Listed['outputSchema']>;
  run(call: ToolCall): Promise<CallToolResult>;
}
