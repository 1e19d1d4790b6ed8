import { build } from '../../../scripts/lib/build/build.ts';
import { PROGRAMS } from './programs.ts';

// Builds the service and the other programs that tests start often.
await build(process.cwd());
await build(process.cwd(), PROGRAMS);
