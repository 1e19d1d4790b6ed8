import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { closeFolder } from '../../../src/store/private-folder.ts';

const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8);
/** Only root can give a file to another user. */
const asRoot = test.skipIf(process.getuid?.() !== 0);
const ANOTHER = 12_345;
const ANOTHER_GROUP = 12_346;

/** A data folder with a file in it, and what is said of it. */
function made(mode: number, files: Record<string, number> = {}) {
  const folder = join(mkdtempSync(join(tmpdir(), 'percall-private-')), 'data');
  mkdirSync(folder);
  for (const [name, of] of Object.entries(files)) {
    writeFileSync(join(folder, name), '');
    chmodSync(join(folder, name), of);
  }
  chmodSync(folder, mode);
  const said: string[] = [];
  const note = (level: string) => (detail: { path: string }, message: string) =>
    void said.push(`${level} ${detail.path}: ${message}`);
  return { folder, said, run: () => closeFolder(folder, { info: note('info'), warn: note('warn') }) };
}

describe('a data folder of ours', () => {
  test('is made for us alone', () => {
    const folder = join(mkdtempSync(join(tmpdir(), 'percall-private-')), 'a', 'b');
    closeFolder(folder, { info: () => {}, warn: () => {} });
    expect([modeOf(folder), modeOf(join(folder, '..'))]).toEqual(['700', '700']);
  });

  test.each([0o755, 0o770, 0o777, 0o701])('that others may enter (%o) is closed, and that is said once', (mode) => {
    const { folder, said, run } = made(mode);
    run();
    run();
    expect(modeOf(folder)).toBe('700');
    expect(said).toEqual([expect.stringContaining(`warn ${folder}: other users`)]);
  });

  test('that is closed stays as it is, and nothing is said', () => {
    const { folder, said, run } = made(0o500);
    run();
    expect([modeOf(folder), said]).toEqual(['500', []]);
  });

  test('has its files closed, those of a database that is open too, and no other program’s', () => {
    const names = ['ledger.db', 'ledger.db-wal', 'ledger.db-shm', 'chain.db', 'limits.db', 'ledger.lock', 'boot-id'];
    const files = Object.fromEntries(names.map((name) => [name, 0o664]));
    const { folder, run } = made(0o700, { ...files, 'notes.txt': 0o644 });
    run();
    for (const name of names) expect([name, modeOf(join(folder, name))]).toEqual([name, '600']);
    expect(modeOf(join(folder, 'notes.txt'))).toBe('644');
  });

  test('may hold a folder with a file’s name, and a name without a file', () => {
    const { folder, run } = made(0o700);
    mkdirSync(join(folder, 'old.db'));
    chmodSync(join(folder, 'old.db'), 0o755);
    symlinkSync(join(folder, 'ended'), join(folder, 'ledger.db-wal'));
    run();
    expect(modeOf(join(folder, 'old.db'))).toBe('755');
  });

  asRoot('may hold a closed file of another user', () => {
    const { folder, run } = made(0o700, { 'ledger.db': 0o600 });
    chownSync(join(folder, 'ledger.db'), ANOTHER, ANOTHER_GROUP);
    run();
    expect(modeOf(join(folder, 'ledger.db'))).toBe('600');
  });

  test('is left to a system without users', () => {
    const folder = join(mkdtempSync(join(tmpdir(), 'percall-private-')), 'data');
    const { getuid } = process;
    try {
      Object.assign(process, { getuid: undefined });
      closeFolder(folder, { info: () => {}, warn: () => {} });
    } finally {
      Object.assign(process, { getuid });
    }
    expect(existsSync(folder)).toBe(false);
  });

  test('in which everyone may make files is refused as it is', () => {
    const { folder, run } = made(0o1777);
    expect(run).toThrow(/DATA_DIR/);
    expect(modeOf(folder)).toBe('1777');
  });
});

describe('a data folder of another user', () => {
  asRoot.each([
    [0o700, ANOTHER_GROUP],
    [0o770, 0],
  ])('that is closed to others (%o) is accepted, and named', (mode, group) => {
    const { folder, said, run } = made(mode, { 'ledger.db': 0o644 });
    chownSync(folder, ANOTHER, group);
    run();
    expect(modeOf(folder)).toBe(mode.toString(8));
    expect(said).toEqual([expect.stringMatching(/^info .* belongs to another user \(12345\)/)]);
    expect(modeOf(join(folder, 'ledger.db'))).toBe('600');
  });

  asRoot.each([
    [0o755, ANOTHER_GROUP, 'go-rwx'],
    [0o750, ANOTHER_GROUP, 'go-rwx'],
    [0o775, 0, 'o-rwx'],
  ])('that others may enter (%o) is refused with the command that closes it', (mode, group, change) => {
    const { folder, run } = made(mode);
    chownSync(folder, ANOTHER, group);
    expect(run).toThrow(`sudo chmod ${change} '${folder}'`);
    expect(modeOf(folder)).toBe(mode.toString(8));
  });

  asRoot('holds no file that others may read', () => {
    const { folder, run } = made(0o700, { "it's.db": 0o640 });
    const path = join(folder, "it's.db");
    chownSync(path, ANOTHER, ANOTHER_GROUP);
    const quoted = `'${path.replace("'", "'\\''")}'`;
    const who = `other users of this machine may read or write ${path}, which belongs to user ${ANOTHER}`;
    expect(run).toThrow(new Error(`${who}. Close it: sudo chmod go-rwx ${quoted}`));
  });

  asRoot.each([
    ['of our user', [], 0],
    ['that we were given', [ANOTHER_GROUP], ANOTHER_GROUP],
  ] as const)('may be open to the group %s', (_which, groups, gid) => {
    const { folder, run } = made(0o770);
    chownSync(folder, ANOTHER, gid);
    const { getgroups } = process;
    try {
      Object.assign(process, { getgroups: () => [...groups] });
      run();
    } finally {
      Object.assign(process, { getgroups });
    }
    expect(modeOf(folder)).toBe('770');
  });
});
