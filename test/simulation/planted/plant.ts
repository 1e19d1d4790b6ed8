import type { PromiseName } from '../promises/promise.ts';

/** One change of the source. */
interface Edit {
  /** Below the repository. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
}

/** A fault that is put into the source in memory, to see whether the simulation finds it. */
export interface Plant extends Edit {
  readonly name: string;
  /** What else must change where several guards stand behind each other. */
  readonly and?: readonly Edit[];
  /** Tried only in seeds that sell from payment channels: in no other is there anything of it. */
  readonly inChannels?: true;
  /** Names of the promises of which at least one must break. */
  readonly breaks: readonly PromiseName[];
}

const waiting: { readonly name: string; readonly edit: Edit }[] = [];
const applied = new Set<Edit>();

export const editsOf = ({ and = [], ...first }: Plant): readonly Edit[] => [first, ...and];

/** Plants these alone from here on: to be called before the service is loaded. */
export function choosePlants(plants: readonly Plant[]): void {
  waiting.length = 0;
  applied.clear();
  for (const plant of plants) waiting.push(...editsOf(plant).map((edit) => ({ name: plant.name, edit })));
}

/** The source of a file with what is planted in it. Throws where a plant does not fit any more, so that a stale one is noticed. */
export function plantInto(url: string, source: string): string {
  let text = source;
  for (const { name, edit } of waiting) {
    if (!url.endsWith(`/${edit.file}`)) continue;
    const times = text.split(edit.find).length - 1;
    if (times !== 1) throw new Error(`plant ${name}: what it replaces occurs ${times} times in ${edit.file}`);
    text = text.replace(edit.find, () => edit.replace);
    applied.add(edit);
  }
  return text;
}

/** Files of chosen plants that were never loaded, each with its plant's name. */
export const unplanted = (): readonly { name: string; file: string }[] =>
  waiting.filter(({ edit }) => !applied.has(edit)).map(({ name, edit }) => ({ name, file: edit.file }));
