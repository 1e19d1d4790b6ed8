import { readFileSync } from 'node:fs';

/** The chain as people know it. */
export interface NamedChain {
  readonly name: string;
  /** Whether its coins are worth nothing, as on the embedded network. */
  readonly isPlayMoney: boolean;
}

/** The chain's name for a text. Play money is named wherever the chain is: `Arc`, `Arc (demo, play money)`. */
export function chainTitle({ name, isPlayMoney }: NamedChain): string {
  return isPlayMoney ? `${name} (demo, play money)` : name;
}

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** The version of this service, from package.json. Outgoing requests and `initialize` of MCP name it. The interface's documents have one of their own. */
export const SERVICE_VERSION: string = manifest.version;
