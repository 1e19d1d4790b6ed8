import type { CallToolResult, Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { surfacesOf } from '../catalogue/paths.ts';
import { BadParameter } from '../errors.ts';
import { own } from '../lib/untrusted.ts';

// What the files of this folder share: a call, a tool, its name, the addresses of the server and the rails.

export interface ToolCall {
  readonly address: ToolAddress;
  /** As received: an object, or undefined when absent. */
  readonly arguments: unknown;
  readonly meta: unknown;
  readonly client: string;
  /** The value that proves on redelivery that the same client asks. */
  readonly identity: string;
  readonly requestId: string;
  readonly signal: AbortSignal;
  /** Runs a task after the last byte of the answer was sent. */
  onSent(done: () => Promise<void>): void;
}

export interface Tool {
  readonly name: string;
  readonly group: 'free' | 'priced';
  /** Without the schema of the answer. Null where the address does not offer the tool. */
  listedAt(address: ToolAddress): Listed | null;
  /** Of `structuredContent`. Made for each call, because few clients ask for it and it is long. */
  outputSchema(): NonNullable<Listed['outputSchema']>;
  /** Throws AppErrors; any other thrown value is a bug. */
  run(call: ToolCall): Promise<CallToolResult>;
}

/** For example `paid_fees_forecast`: as stable as the route. One for both rails, as an invoice binds it. */
export function toolName({ access, path }: { access: Endpoint<never>['access']; path: string }): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '');
  return [access, ...words].join('_').toLowerCase();
}

/** A tool's URL, as x402's MCP transport names a paid resource. */
export function toolUrl(name: string): string {
  return `mcp://tool/${name}`;
}

/** Members of `_meta`: x402's payment of a call and receipt of a result, and our own, the rail that a call asks for. */
export const PAYMENT = 'x402/payment';
export const RECEIPT = 'x402/payment-response';
export const RAIL = 'percall/rail';

/** One address of the server. Who adds it chooses the rail by it: a model sets neither `_meta` nor a header. */
export interface ToolAddress {
  /** Lightning invoices of tool calls bind it. */
  readonly path: `/mcp${string}`;
  /** The rail of the address. Null: each tool's first one. */
  readonly rail: Rail | null;
}

/** Every tool, in USDC where the tool is sold for it. */
export const MAIN_ADDRESS: ToolAddress = { path: '/mcp', rail: null };
/** The tools that bitcoin buys, and the free ones. */
export const LIGHTNING_ADDRESS: ToolAddress = { path: '/mcp/lightning', rail: 'lightning' };

export type Rail = 'usdc' | 'lightning';

/** The rails of a priced entry. The first is what an unpaid call is offered by default. */
export function railsOf(endpoint: Pick<Endpoint<never>, 'access' | 'path' | 'onlyOn'>): readonly Rail[] {
  return surfacesOf(endpoint).map((surface) => (surface === 'lightning' ? 'lightning' : 'usdc'));
}

/**
 * That of `_meta`, else the address's `usual`, else the tool's first. Throws BadParameter for one that it is not sold
 * on. Lightning waits to be asked for where there is USDC too: an offer makes the node create an invoice.
 */
export function askedRail(meta: unknown, rails: readonly Rail[], usual: Rail | null): Rail {
  const asked = own(meta, RAIL);
  const wanted = asked === undefined ? (usual ?? rails[0]) : asked;
  const rail = rails.find((one) => one === wanted);
  if (rail !== undefined) return rail;
  throw new BadParameter([{ path: `_meta.${RAIL}`, message: `this tool can be paid by: ${rails.join(', ')}` }]);
}

export function isSoldAt(rail: Rail | null, rails: readonly Rail[]): boolean {
  return rail === null || rails.includes(rail);
}
