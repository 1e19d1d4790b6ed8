import { readFileSync } from 'node:fs';
import { z } from 'zod';

// What documents, answers and requests say of the service and of an answer's source.

export interface NamedChain {
  readonly name: string;
  /** Its coins are worth nothing. */
  readonly isPlayMoney: boolean;
}

/** `Arc`, or `Arc (demo, play money)`. */
export function chainTitle({ name, isPlayMoney }: NamedChain): string {
  return isPlayMoney ? `${name} (demo, play money)` : name;
}

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** For outgoing requests and MCP's `initialize`. Documents of the interface have a version of their own. */
export const SERVICE_VERSION: string = manifest.version;

/** Of every data answer, so that a buyer can check the data at its origin. */
export const sourceSchema = z
  .strictObject({
    name: z.string().meta({ description: 'The origin of the data, in words' }),
    url: z.string().meta({ description: 'Where it was read; of chain answers scheme and host only' }),
    retrievedAt: z.int().meta({ description: 'Unix seconds at which it was read' }),
    licence: z.string().optional().meta({ description: 'Licence of the content, where it has one' }),
  })
  .meta({ description: 'Where the answer comes from' });

export type Source = z.output<typeof sourceSchema>;
