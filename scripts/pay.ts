import { payCommand } from '../cli/pay/pay-command.ts';

// Files of payments and channels hold signatures.
process.umask(0o077);
// A reader may have gone. Its write then fails, and the command says so; without a listener Node would end the program before that.
process.stdout.on('error', () => {});

const NEWLINE = 0x0a;

process.exitCode = await payCommand(process.argv.slice(2), {
  env: process.env,
  folder: process.cwd(),
  // Standard output holds only the answer.
  say: (line) => console.error(line),
  // A shell's prompt, and the next answer in a file, begin on a line of their own.
  deliver: (body) =>
    new Promise<void>((written, reject) => {
      const line = body.at(-1) === NEWLINE ? body : Buffer.concat([body, Buffer.of(NEWLINE)]);
      process.stdout.write(line, (error) => (error ? reject(error) : written()));
    }),
});
