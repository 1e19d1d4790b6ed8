import packageJson from '../../../package.json' with { type: 'json' };

/** What `npm start` runs after its build: a variable of glibc (`NAME=value`), Node's options, and the program. */
export function startCommand(): { variable: string; options: string[]; program: string } {
  const [, command = ''] = packageJson.scripts.start.split(' && exec env ');
  const [variable = '', , ...words] = command.split(' ');
  return { variable, options: words.slice(0, -1), program: words.at(-1) ?? '' };
}
