import { parseArgs } from 'node:util';
import { CLIENTS } from './clients/clients.ts';
import { judgeClient } from './clients/judge.ts';
import { openShop } from './clients/shop.ts';
import { renderTable } from './clients/table.ts';

// `npm run clients`: sends every client that is in use, unmodified, to every surface of a local service, and prints who bought.

const USAGE = `Runs every known client against a local service with every way to pay, and prints a Markdown table.

  npm run clients [-- --only TEXT]

  --only TEXT  the clients whose name contains this
  --help       this text

@faremeter/fetch is installed into data/kits first, and is not run where the registry does not answer.
Exit code: 0; 1 when a client paid, and got no answer or no evidence of the payment.`;

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { only: { type: 'string', default: '' }, help: { type: 'boolean' } } });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const wanted = CLIENTS.filter(({ name }) => name.includes(values.only));
  const shop = await openShop();
  try {
    const outcomes = [];
    for (const client of wanted) {
      console.error(`${client.name} …`);
      outcomes.push(...(await judgeClient(client, shop)));
    }
    console.log(renderTable(outcomes));
    return outcomes.some(({ isLost }) => isLost) ? 1 : 0;
  } finally {
    await shop.stop();
  }
}

process.exitCode = await main();
