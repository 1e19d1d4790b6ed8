import { build } from '../../../scripts/lib/build/build.ts';
import { PROGRAMS } from './programs.ts';

/** Builds the service before the tests, which start it as `npm start` does, and the other programs that they start often. */
export default async function buildService(): Promise<void> {
  await build(process.cwd());
  await build(process.cwd(), PROGRAMS);
}
