import { parseArgs } from 'node:util';
import { type Checker, canCheck, openChecker, runWithout, trace, turnedOff } from './lib/model/checker.ts';
import { boundsText, MODELS, type Model } from './lib/model/models.ts';
import { textTable } from './lib/text-table.ts';

const USAGE = `npm run model -- [--full] [--matrix] [--trace GUARD]
Checks the models of docs/model with Spin: that all invariants hold within the bounds, and that each guard is needed.
--full         wider bounds: minutes, and up to 12 GB of memory
--matrix       every guard against every invariant
--trace GUARD  the shortest way to the fault without this guard`;

const { values } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    matrix: { type: 'boolean', default: false },
    trace: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) console.log(USAGE);
else if (!(await canCheck())) stop('spin and cc are needed: apt-get install spin gcc libc6-dev');
else if (values.trace) await showTrace(values.trace);
else if (values.matrix) for (const model of MODELS) await withChecker(model, (checker) => showMatrix(model, checker));
else for (const model of MODELS) await withChecker(model, (checker) => showModel(model, checker));

function stop(message: string): void {
  console.error(message);
  process.exitCode = 1;
}

async function withChecker(model: Model, show: (checker: Checker) => Promise<void>): Promise<void> {
  const checker = await openChecker(model, { large: values.full });
  await show(checker).finally(checker.close);
}

/** Prints the runs with all guards, then those without one. A fault with all guards, or none without one, ends in exit code 1. */
async function showModel(model: Model, checker: Checker): Promise<void> {
  const rows = [[model.name, 'states', 'MB', 'seconds', 'invariants']];
  for (const bounds of values.full ? [...model.small, ...model.full] : model.small) {
    const { isViolated, states, megabytes, seconds } = await checker.check({ bounds });
    rows.push([
      boundsText(bounds),
      String(states),
      megabytes.toFixed(0),
      seconds.toFixed(1),
      isViolated ? 'FAIL' : 'hold',
    ]);
    if (isViolated) process.exitCode = 1;
  }
  console.log(`${textTable(rows).join('\n')}\n`);
  const guards = [['without', 'breaks', 'states until then']];
  for (const guard of model.guards) {
    const { isViolated, states } = await checker.check(runWithout(model, guard));
    guards.push([turnedOff(guard).join(', '), isViolated ? guard.breaks : 'NOTHING', String(states)]);
    if (!isViolated) process.exitCode = 1;
  }
  console.log(`${textTable(guards).join('\n')}\n`);
}

async function showMatrix(model: Model, checker: Checker): Promise<void> {
  const rows = [['without', ...model.invariants]];
  for (const guard of model.guards) {
    const row = [turnedOff(guard).join(', ')];
    for (const invariant of model.invariants) {
      const { isViolated } = await checker.check(runWithout(model, guard, invariant));
      row.push(isViolated ? 'breaks' : 'holds');
    }
    rows.push(row);
  }
  console.log(`${textTable(rows).join('\n')}\n`);
}

async function showTrace(name: string): Promise<void> {
  const found = MODELS.flatMap((model) =>
    model.guards.filter((guard) => guard.name === name).map((guard) => ({ model, guard })),
  );
  if (found.length === 0) return stop(`there is no guard ${name}`);
  for (const { model, guard } of found) {
    console.log(`${model.name} without ${turnedOff(guard).join(', ')}: ${guard.breaks} fails`);
    console.log((await trace(model, guard)).join('\n'));
  }
}
