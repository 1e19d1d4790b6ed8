/** A mutant as Stryker reports it; lines and columns are counted from 1. */
export interface Mutant {
  readonly fileName: string;
  readonly location: { readonly start: Position; readonly end: Position };
  readonly replacement?: string | undefined;
  readonly status: string;
}
interface Position {
  readonly line: number;
  readonly column: number;
}

/** A mutant that no test can kill, because it behaves the same, or because no test can observe the difference. */
export interface Equivalent {
  readonly file: string;
  /** The mutated expression and its replacement. White space does not count. */
  readonly source: string;
  readonly replacement: string;
  /** The line on which it begins, for an expression that the file contains several times. */
  readonly line?: string;
  readonly reason: string;
}

/** The results of a file's mutants. `score` is in percent of those that are not equivalent. */
export interface FileScore {
  readonly file: string;
  readonly killed: number;
  readonly survived: number;
  readonly equivalent: number;
  readonly ignored: number;
  readonly score: number;
  /** `line: expression → replacement` of each mutant that survived. */
  readonly survivors: readonly string[];
}

/** An error outside the tests, such as an unhandled rejection, fails a run of Vitest too. */
const KILLED = new Set(['Killed', 'Timeout', 'RuntimeError']);

/**
 * Scores mutants by file. It also finds wrong entries of the equivalents list: entries that match no mutant of a mutated file, and entries that a
 * test kills.
 * `textOf` reads a file by the name in the mutants.
 */
export function scoreMutants(
  mutants: readonly Mutant[],
  equivalents: readonly Equivalent[],
  textOf: (file: string) => string,
): { files: FileScore[]; wrong: string[] } {
  const files = [...new Set(mutants.map(({ fileName }) => fileName))].sort();
  const wrong: string[] = [];
  const scores = files.map((file) => {
    const listed = equivalents.filter((entry) => entry.file === file);
    const lines = textOf(file).split('\n');
    const texts = mutants
      .filter(({ fileName }) => fileName === file)
      .map((mutant) => ({ mutant, ...text(mutant, lines) }));
    const matches = listed.map((entry) => texts.filter((found) => isMatch(found, entry)));
    matches.forEach((found, at) => {
      const { source = '', replacement = '' } = listed[at] ?? {};
      if (found.length === 0) wrong.push(`${file}: no mutant is ${source} → ${replacement}`);
      else if (found.every(({ mutant }) => mutant.status === 'Killed'))
        wrong.push(`${file}: a test kills ${source} → ${replacement}`);
    });
    const isListed = new Set(matches.flat());
    const alive = texts.filter(({ mutant: { status } }) => status === 'Survived' || status === 'NoCoverage');
    const survivors = alive.filter((found) => !isListed.has(found));
    const killed = texts.filter(({ mutant }) => KILLED.has(mutant.status)).length;
    const counted = killed + survivors.length;
    return {
      file,
      killed,
      survived: survivors.length,
      equivalent: alive.length - survivors.length,
      ignored: texts.length - killed - alive.length,
      score: counted === 0 ? 100 : (killed / counted) * 100,
      survivors: survivors.map(
        ({ number, source, replacement }) => `${number}: ${clip(source)} → ${clip(replacement)}`,
      ),
    };
  });
  return { files: scores, wrong };
}

interface MutantText {
  readonly number: number;
  readonly line: string;
  readonly source: string;
  readonly replacement: string;
}

function text({ location: { start, end }, replacement = '' }: Mutant, lines: readonly string[]): MutantText {
  const touched = lines.slice(start.line - 1, end.line);
  const last = touched.length - 1;
  const source = touched.map((line, at) =>
    line.slice(at === 0 ? start.column - 1 : 0, at === last ? end.column - 1 : undefined),
  );
  return {
    number: start.line,
    line: plain(lines[start.line - 1] ?? ''),
    source: plain(source.join('\n')),
    replacement: plain(replacement),
  };
}

function isMatch(found: MutantText, { source, replacement, line }: Equivalent): boolean {
  if (line !== undefined && plain(line) !== found.line) return false;
  return plain(source) === found.source && plain(replacement) === found.replacement;
}

/** Code with each white space as one space, and none around it. */
export function plain(code: string): string {
  return code.replace(/\s+/g, ' ').trim();
}

function clip(code: string): string {
  return code.length > 100 ? `${code.slice(0, 99)}…` : code;
}
