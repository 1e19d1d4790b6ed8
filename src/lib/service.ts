import { readFileSync } from 'node:fs';
import { z } from 'zod';

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

/** The source of an answer. Every data answer has one, so that a buyer can check the data at its origin. */
export const sourceSchema = z
  .strictObject({
    name: z.string().meta({ description: 'The origin of the data, in words' }),
    url: z.string().meta({ description: 'Where it was read; of chain answers scheme and host only' }),
    retrievedAt: z.int().meta({ description: 'Unix seconds at which it was read' }),
    licence: z.string().optional().meta({ description: 'Licence of the content, where it has one' }),
  })
  .meta({ description: 'Where the answer comes from' });

/** A source as an answer names it. */
export type Source = z.output<typeof sourceSchema>;
