import { build } from '../../../scripts/lib/build/build.ts';

/** Builds the service before the tests, which start it as `npm start` does. */
export default async function buildService(): Promise<void> {
  await build(process.cwd());
}
