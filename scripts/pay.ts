import { payCommand } from './lib/pay/pay-command.ts';

// A reader may have gone. Its write then fails, and the command says so; without a listener Node would end the program before that.
process.stdout.on('error', () => {});

process.exitCode = await payCommand(process.argv.slice(2), {
  env: process.env,
  folder: process.cwd(),
  // Standard output holds only the answer.
  say: (line) => console.error(line),
  deliver: (body) =>
    new Promise<void>((written, reject) => {
      process.stdout.write(body, (error) => (error ? reject(error) : written()));
    }),
});
