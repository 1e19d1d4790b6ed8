import { sep } from 'node:path';
import { BaseSequencer } from 'vitest/node';

/**
 * The folders of test/ whose files take longest, in this order: kills, faults and browsers take up to a minute, where most files take less than a second.
 * One that begins last would run alone, on one of two cores.
 */
const LONG = ['ports/rail', 'crash', 'model', 'simulation', 'browser', 'fault', 'conformance', 'ports'];

/**
 * Lets the folders with long files begin first. Within a folder the order is Vitest's: the longest file first where it has run here before, else the
 * largest. In a fresh clone Vitest alone would begin with the largest of all, and a large file need not be a long one.
 */
export class LongFirst extends BaseSequencer {
  override async sort(files: Parameters<BaseSequencer['sort']>[0]) {
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => rank(a.moduleId) - rank(b.moduleId));
  }
}

function rank(path: string): number {
  const at = LONG.findIndex((folder) => path.split(sep).join('/').includes(`/test/${folder}/`));
  return at === -1 ? LONG.length : at;
}
