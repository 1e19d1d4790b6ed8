import type { Rail } from './rails.ts';

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
