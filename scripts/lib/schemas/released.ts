/** A schema that a version of the service left in a database. */
export interface ReleasedSchema {
  readonly database: 'sqlite' | 'postgres' | 'chain';
  /** The number of its newest migration. */
  readonly version: number;
  /** The last commit of main whose code has this schema. Its code made the database of test/fixtures/schemas. */
  readonly commit: string;
}

const of = (database: ReleasedSchema['database'], commits: Record<number, string>): ReleasedSchema[] =>
  Object.entries(commits).map(([version, commit]) => ({ database, version: Number(version), commit }));

/**
 * Every schema that main ever had, oldest first. Numbers without a commit of their own came together with the next one. SQLite's versions 9 and 14 are
 * in UNFIT too: two branches were merged there out of the order of their numbers, and the commits below have what was whole again.
 */
export const RELEASED: readonly ReleasedSchema[] = [
  ...of('sqlite', { 1: 'acaab798', 3: '60437a6b', 5: '6368db01', 10: '1f4d2ff3', 11: 'deab7302', 14: 'b26bd523' }),
  ...of('sqlite', { 15: '7da0f7b8', 16: 'f5197871', 17: '1a85cb51', 18: '1ca80451', 19: 'f0545bc1' }),
  ...of('sqlite', { 21: '4348a030', 22: '115b7da1' }),
  ...of('postgres', { 12: 'deab7302', 14: 'b26bd523', 15: '7da0f7b8', 16: 'f5197871', 17: '1a85cb51', 18: '1ca80451' }),
  ...of('postgres', { 19: 'f0545bc1', 21: '4348a030', 22: '115b7da1' }),
  ...of('chain', { 1: '38267a66', 2: '6cf1882d', 3: 'f0545bc1', 5: '4348a030' }),
];

/**
 * Two states of main, for some commits each, in which a file of SQLite had a migration while one with a lower number was still to come. SQLite counts
 * the newest number alone, so the lower one would never be applied. They were never released; opening such a file must be refused in words.
 */
export const UNFIT: readonly ReleasedSchema[] = of('sqlite', { 9: '8a34d116', 14: '235fd35c' });

/** The file of a schema's database in test/fixtures/schemas. */
export const fixtureOf = ({ database, version, commit }: ReleasedSchema): string =>
  `${database}-${String(version).padStart(3, '0')}-${commit}.${database === 'postgres' ? 'sql' : 'db.gz'}`;
