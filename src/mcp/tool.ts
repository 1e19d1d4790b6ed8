import type { CallToolResult, Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { surfacesOf } from '../catalogue/paths.ts';
import { BadParameter } from '../errors.ts';
import { own } from '../lib/untrusted.ts';

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

/**
 * The name of an entry's tool: its access and the words of its path, for example `paid_fees_forecast`.
 * It follows from the path alone, so it is as stable as the route. One name serves both rails, because a Lightning invoice binds the name.
 */
export function toolName({ access, path }: { access: Endpoint<never>['access']; path: string }): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '');
  return [access, ...words].join('_').toLowerCase();
}

/** The URL of a tool, as x402's MCP transport names a paid resource. */
export function toolUrl(name: string): string {
  return `mcp://tool/${name}`;
}

/** The member of a call's `_meta` in which x402's MCP transport carries a payment. */
export const PAYMENT = 'x402/payment';
/** The member of a result's `_meta` in which it carries the receipt. */
export const RECEIPT = 'x402/payment-response';
/** Our own member of `_meta`: the rail that a call without a payment asks to be offered. */
export const RAIL = 'percall/rail';

/**
 * One address of the tools server. The host that adds a server chooses the rail by its address, because a model can set neither a call's `_meta` nor a
 * header.
 */
export interface Door {
  /** Lightning invoices of tool calls bind it. */
  readonly path: `/mcp${string}`;
  /** The rail of the address. Null: each tool's first one. */
  readonly rail: Rail | null;
}

/** Every tool, in USDC where the tool is sold for it. */
export const MAIN_DOOR: Door = { path: '/mcp', rail: null };
/** The tools that bitcoin buys, and the free ones. */
export const LIGHTNING_DOOR: Door = { path: '/mcp/lightning', rail: 'lightning' };
export const DOORS: readonly Door[] = [MAIN_DOOR, LIGHTNING_DOOR];

/** The rails that can pay for a priced tool. */
export type Rail = 'usdc' | 'lightning';

/** The rails of a priced entry. The first is the one that an unpaid call is offered by default. */
export function railsOf(endpoint: Pick<Endpoint<never>, 'access' | 'path' | 'onlyOn'>): readonly Rail[] {
  return surfacesOf(endpoint).map((surface) => (surface === 'lightning' ? 'lightning' : 'usdc'));
}

/**
 * The rail that an unpaid call is offered: that of `_meta`, else the `usual` one of the address, else the tool's first. Throws BadParameter for a rail that the
 * tool is not sold on.
 * Offering USDC costs nothing. Offering Lightning makes the node create an invoice and runs the handler.
 * So Lightning is offered only when the client asks for it, or when the tool is sold for bitcoin only.
 */
export function askedRail(meta: unknown, rails: readonly Rail[], usual: Rail | null): Rail {
  const asked = own(meta, RAIL);
  const wanted = asked === undefined ? (usual ?? rails[0]) : asked;
  const rail = rails.find((one) => one === wanted);
  if (rail !== undefined) return rail;
  throw new BadParameter([{ path: `_meta.${RAIL}`, message: `this tool can be paid by: ${rails.join(', ')}` }]);
}

/** Whether a tool is offered at an address: one without a rail of its own offers every tool. */
export function isSoldAt(rail: Rail | null, rails: readonly Rail[]): boolean {
  return rail === null || rails.includes(rail);
}

/** The rail of a presented payment, found by the network that the payment accepted. */
export function paidRail(payment: unknown): Rail {
  const network = own(own(payment, 'accepted'), 'network');
  return typeof network === 'string' && network.startsWith('lnbtc:') ? 'lightning' : 'usdc';
}
