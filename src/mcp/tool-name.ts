import type { Endpoint } from '../catalogue/endpoint.ts';

/**
 * The name of an entry's tool: its access and the words of its path, `paid_fees_forecast`. It follows from the path alone, so that it is
 * as stable as the route; one name serves both rails, because a name is part of what a Lightning invoice binds.
 */
export function toolName({ access, path }: { access: Endpoint<never>['access']; path: string }): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '');
  return [access, ...words].join('_').toLowerCase();
}

/** The address of a tool as x402's MCP transport names what is paid for. */
export function toolUrl(name: string): string {
  return `mcp://tool/${name}`;
}
