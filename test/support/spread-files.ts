import { sep } from 'node:path';
import { BaseSequencer } from 'vitest/node';

/**
 * For folders of test/, the part of the run in which their files begin: 0 is its start, 1 its end. A file counts in the first folder that holds it.
 *
 * Some files wait most of their time (browser, fault), others compute. Where each kind ran by itself, a third of the processor time was unused while files
 * waited. So they are spread over the same part. Files of more than ten seconds begin early, because one that begins last runs alone at the end.
 */
export const PARTS: readonly (readonly [folder: string, from: number, to: number])[] = [
  ['ports/rail', 0, 0.05],
  ['crash', 0, 0.3],
  ['browser', 0, 0.3],
  ['fault', 0.03, 0.75],
  ['model', 0.1, 0.2],
  ['simulation', 0.15, 0.3],
  ['conformance/instances', 0.1, 0.5],
  ['conformance/upstream', 0.1, 0.6],
  ['conformance', 0.25, 0.9],
  ['ports', 0.25, 0.85],
  ['unit/scripts', 0.2, 0.7],
  ['', 0.2, 1],
];

/** Begins the files of each folder evenly over its part of the run. Within a folder the order is Vitest's: the longest or largest file first. */
export class SpreadFiles extends BaseSequencer {
  override async sort(files: Parameters<BaseSequencer['sort']>[0]) {
    return spreadFiles(await super.sort(files));
  }
}

/** The files in the order in which they begin. */
export function spreadFiles<F extends { readonly moduleId: string }>(files: readonly F[]): F[] {
  return [...Map.groupBy(files, ({ moduleId }) => partOf(moduleId))]
    .flatMap(([[, from, to], those]) =>
      those.map((file, at) => ({ file, begin: from + ((to - from) * at) / those.length })),
    )
    .sort((a, b) => a.begin - b.begin)
    .map(({ file }) => file);
}

function partOf(file: string): (typeof PARTS)[number] {
  const path = file.split(sep).join('/');
  // The last part holds every file.
  return PARTS.find(([folder]) => path.includes(`/test/${folder}`)) as (typeof PARTS)[number];
}
