interface Identified {
  readonly id: string;
  readonly aliases: readonly string[];
}

/** One vulnerability under all its names. */
export interface Flaw<T> {
  /** The name that most buyers know: GitHub's, else the CVE number, else the first record's own. */
  readonly id: string;
  /** All other names, sorted. */
  readonly aliases: string[];
  /** Its records, the one called `id` first. */
  readonly records: readonly T[];
}

/**
 * Merges the records of one vulnerability: those that share an id or an alias, directly or through others (aliases are symmetric and transitive,
 * https://ossf.github.io/osv-schema/#aliases-field), because GitHub, PyPA, Go and RustSec each publish their own record of it.
 */
export function mergeByAlias<T extends Identified>(records: readonly T[]): Flaw<T>[] {
  const groups = new Map<string, Set<T>>();
  for (const record of records) {
    const names = [record.id, ...record.aliases];
    const joined = new Set<T>();
    for (const name of names) for (const other of groups.get(name) ?? []) joined.add(other);
    joined.add(record);
    for (const member of joined) for (const name of [member.id, ...member.aliases]) groups.set(name, joined);
  }
  return [...new Set(groups.values())].map((group) => asFlaw([...group]));
}

function asFlaw<T extends Identified>(group: readonly T[]): Flaw<T> {
  const records = [...group].sort((a, b) => rank(a.id) - rank(b.id));
  const id = records[0]?.id ?? '';
  const names = new Set(records.flatMap((record) => [record.id, ...record.aliases]));
  names.delete(id);
  return { id, aliases: [...names].sort(), records };
}

function rank(id: string): number {
  if (id.startsWith('GHSA-')) return 0;
  return id.startsWith('CVE-') ? 1 : 2;
}
