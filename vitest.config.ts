import { accessSync, constants, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { SpreadFiles } from './test/support/spread-files.ts';

// Some hundred programs are started: each compiles 1,500 modules unless Node finds them here. A change of a file makes its entry anew.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'percall-compiled');

// With more arenas the workers take more memory and are no quicker. Memory costs time, too: Linux copies the page tables of a worker for each program that
// it starts. Programs that tests start inherit this variable.
process.env.MALLOC_ARENA_MAX ??= '2';
// Freed memory goes back to the system at once. By default a worker keeps up to 64 MB of it. The value is glibc's own first one, in bytes.
process.env.MALLOC_TRIM_THRESHOLD_ ??= '131072';
// Native memory comes in huge pages (2 MB) where the kernel's transparent huge pages are `madvise`. The quick tests caused half as many page faults.
process.env.GLIBC_TUNABLES ??= 'glibc.malloc.hugetlb=1';
// Each semi-space may have 16 MB. With 8 MB, tests took a tenth more processor time. 32 MB saved nothing more.
const SEMI_SPACE = '--max-semi-space-size=16';
// The heap is collected when it has grown by half. By default V8 lets it grow up to fourfold: then a run took up to 0.5 GB more, and about the same time.
const HEAP_GROWTH = '--heap-growing-percent=50';

// Ledgers and PostgreSQL's files go into memory where there is room: on a disk, syncs take a tenth of the time of the tests that write. No test needs
// a real disk: kills leave the system's files as they are, and test/fault/disk has a faulty disk of its own.
const MEMORY = '/dev/shm';
const ROOM_BYTES = 4e9;
if (hasRoom(MEMORY)) process.env.TMPDIR ??= MEMORY;

function hasRoom(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}

// A random order that is asked for is the one that is run.
const isShuffled = process.argv.some((option) => option.startsWith('--sequence.shuffle'));

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: [
      'test/support/loopback-only.ts',
      'test/support/undici-timer.ts',
      'test/support/postgres/drop-databases.ts',
    ],
    // Tests wait for events. These only end one that hangs, on a machine that is as busy as it may be.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // Five workers for two cores: suites wait for blocks, processes and time-outs. A run then takes up to 3.2 GB. Four took 0.25 GB less, and a tenth more
    // time.
    maxWorkers: 5,
    // V8 marks garbage on its helper threads while a test goes on. With `--single-threaded-gc` a run took up to 0.7 GB more, and about the same time.
    execArgv: [SEMI_SPACE, HEAP_GROWTH],
    // Node strips the types itself, as it does for the scripts. Vite would transform each file first. Without it there is no `vi.mock`, which no test needs.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: isShuffled ? {} : { sequencer: SpreadFiles },
    // Files share the modules of their worker: loading them anew for each took twice as long as the quick tests themselves.
    isolate: false,
  },
});
