/** A fault that is put into the source in memory, to see whether the simulation finds it. */
export interface Plant {
  readonly name: string;
  /** Below the repository. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Names of the promises of which at least one must break. */
  readonly breaks: readonly string[];
}

const chosen: Plant[] = [];
const applied = new Set<Plant>();

/** Plants from here on: to be called before the service is loaded. */
export function choosePlants(plants: readonly Plant[]): void {
  chosen.push(...plants);
}

/** The source of a file with what is planted in it. Throws where a plant does not fit any more, so that a stale one is noticed. */
export function plantInto(url: string, source: string): string {
  let text = source;
  for (const plant of chosen) {
    if (!url.endsWith(`/${plant.file}`)) continue;
    const times = text.split(plant.find).length - 1;
    if (times !== 1) throw new Error(`plant ${plant.name}: what it replaces occurs ${times} times in ${plant.file}`);
    text = text.replace(plant.find, () => plant.replace);
    applied.add(plant);
  }
  return text;
}

/** The chosen plants whose file was never loaded. */
export const unplanted = (): readonly Plant[] => chosen.filter((plant) => !applied.has(plant));
