import { globSync, readFileSync } from 'node:fs';

const SOURCE = new URL('../../../src/', import.meta.url);
/** What a file imports of the service while it loads or runs; not types alone. */
const IMPORTS = /\b(?:import|export)\s+(?!type\b)(?:[^'";]*?\bfrom\s+)?'(\.[^']+)'|\bimport\('(\.[^']+)'\)/g;

let importers: ReadonlyMap<string, readonly string[]> | null = null;

/** For each file of the service, the files that import it, by their addresses. */
function readImporters(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const file of globSync('**/*.ts', { cwd: SOURCE })) {
    const from = new URL(file, SOURCE);
    for (const [, named, late] of readFileSync(from, 'utf8').matchAll(IMPORTS)) {
      const to = new URL((named ?? late) as string, from).href;
      found.set(to, [...(found.get(to) ?? []), from.href]);
    }
  }
  return found;
}

/** These files of the service (below the repository) and all that import them, directly or not: the addresses of what a change of them reaches. */
export function withImporters(files: readonly string[]): ReadonlySet<string> {
  importers ??= readImporters();
  const reached = new Set<string>();
  const waiting = files.map((file) => new URL(`../${file}`, SOURCE).href);
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    waiting.push(...(importers.get(file) ?? []));
  }
  return reached;
}
