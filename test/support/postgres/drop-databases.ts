import { afterAll } from 'vitest';
import { dropDatabases } from './postgres-run.ts';

// Vitest setup: a test file's databases are dropped at its end. Each takes 9 MB, which is memory where the run's files are in /dev/shm.
afterAll(dropDatabases);
