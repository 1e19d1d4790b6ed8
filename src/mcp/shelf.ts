import type { Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import { BadParameter } from '../errors.ts';
import { own } from '../lib/own-property.ts';
import type { Door } from './door.ts';
import type { Tool } from './tool.ts';

/** The tools of one address, by their names, and their listings. */
export interface Shelf {
  readonly tools: ReadonlyMap<string, Tool>;
  /** Each list is made once. `full` lists the schemas of the answers too, which make it more than six times as long. */
  listed(full: boolean): readonly Listed[];
  /** How many times as long as the short list the full one is, rounded up. Asking for it counts as so many calls. */
  weightOfFull(): number;
}

/** The tools that an address offers. */
export function createShelf(all: ReadonlyMap<string, Tool>, door: Door): Shelf {
  const offered = [...all].flatMap(([name, tool]) => {
    const listed = tool.listedAt(door);
    return listed ? [{ name, tool, listed }] : [];
  });
  const short = offered.map(({ listed }) => listed);
  let full: readonly Listed[] | null = null;
  let weight: number | null = null;
  const fullNow = (): readonly Listed[] => {
    full ??= offered.map(({ tool, listed }) => ({ ...listed, outputSchema: tool.outputSchema() }));
    return full;
  };
  return {
    tools: new Map(offered.map(({ name, tool }) => [name, tool])),
    listed: (isFull) => (isFull ? fullNow() : short),
    weightOfFull() {
      weight ??= Math.ceil(JSON.stringify(fullNow()).length / JSON.stringify(short).length);
      return weight;
    },
  };
}

/** Whether the address asks for the schemas of the answers: `?schemas=full`. Throws BadParameter for another value. */
export function wantsSchemas(query: unknown): boolean {
  const asked = own(query, 'schemas');
  if (asked === undefined) return false;
  if (asked === 'full') return true;
  throw new BadParameter([{ path: 'schemas', message: 'must be "full", or absent' }]);
}
