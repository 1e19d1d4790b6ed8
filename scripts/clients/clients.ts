import type { Client } from './client.ts';
import { KIT_CLIENTS } from './faremeter-client.ts';
import { LIGHTNING_CLIENTS } from './lightning-clients.ts';
import { MCP_CLIENTS } from './mcp-client.ts';
import { MPPX_CLIENTS } from './mppx-clients.ts';
import { X402_CLIENTS } from './x402-clients.ts';

/** Every client of the table, in its order. */
export const CLIENTS: readonly Client[] = [
  ...X402_CLIENTS,
  ...KIT_CLIENTS,
  ...MPPX_CLIENTS,
  ...LIGHTNING_CLIENTS,
  ...MCP_CLIENTS,
];
