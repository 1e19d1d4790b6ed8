import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { answerShapes } from './lib/answer-shapes.ts';

// Writes the shapes of all answers as a commit has them: `npm run shapes -- <commit>`. Run it with a release's tag once it is published. The test beside
// the file then fails when a field of that release disappears or changes its type.

const FILE = new URL('../test/conformance/docs/released-shapes.json', import.meta.url);
const [commit] = process.argv.slice(2);

if (commit === undefined) {
  console.error('usage: npm run shapes -- <commit>');
  process.exitCode = 1;
} else {
  const document = execFileSync('git', ['show', `${commit}:openapi/openapi.json`], { maxBuffer: 64 * 1024 * 1024 });
  writeFileSync(FILE, `${JSON.stringify(answerShapes(JSON.parse(document.toString())), null, 2)}\n`);
  console.log(`test/conformance/docs/released-shapes.json holds the shapes of ${commit}`);
}
