import { build } from '../../../scripts/lib/build/build.ts';
import { PROGRAMS } from './programs.ts';

// A program of its own, which test/support/global-setup.ts runs in the project's folder.
await build(process.cwd());
await build(process.cwd(), PROGRAMS);
