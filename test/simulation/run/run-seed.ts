import { createDesk } from '../actors/desk.ts';
import { createHonestBuyers } from '../actors/honest.ts';
import type { Move } from '../moves/move.ts';
import { createPlayer } from '../moves/perform.ts';
import { watchAnswers } from '../promises/answers.ts';
import { createCalm } from '../promises/calm.ts';
import { createChannelCheck } from '../promises/channels.ts';
import { createChargedCheck } from '../promises/charged.ts';
import { checkHonest, watchRails } from '../promises/honest.ts';
import type { Breach, PromiseName, Tell } from '../promises/promise.ts';
import { createRelayerCheck } from '../promises/relayer.ts';
import { checkFiles, checkTexts } from '../promises/secrets.ts';
import { createServedCheck } from '../promises/served.ts';
import { checkSums } from '../promises/sums.ts';
import { createWorkCheck } from '../promises/work.ts';
import { createChannelHistory } from '../record/channel-history.ts';
import type { LoadedService } from '../seam.ts';
import { createWorld, type World } from '../world/world.ts';
import { figuresOf } from './figures.ts';
import { claimAtStop, comeToRest, letHappen, openRows } from './rest.ts';
import type { Scenario } from './scenario.ts';

/** What became of a seed. */
export interface Outcome {
  /** The first promise that broke; null where all held. */
  readonly breach: Breach | null;
  /** Moves that were played. */
  readonly played: number;
  readonly events: number;
  /** Of everything that happened. */
  readonly digest: string;
  readonly virtualMs: number;
  /** Of this process's processor time. */
  readonly cpuMs: number;
  readonly figures: Readonly<Record<string, number>>;
}

interface SeedOptions {
  readonly seed: string;
  readonly scenario: Scenario;
  readonly moves: readonly Move[];
  readonly service: LoadedService;
  readonly onEvent?: ((line: string) => void) | null;
}

/** A process is up within this time, or does not start at all. */
const START_MS = 40_000;
const FETCH_MS = 600_000;

/**
 * Plays one seed: the moves in its world. The promises of the relayer, of work and of channels are checked after every step, those of an answer when it
 * leaves, all others once the world is at rest.
 */
export async function runSeed(options: SeedOptions): Promise<Outcome> {
  const began = process.cpuUsage();
  const world = createWorld(options);
  let breach: Breach | null = null;
  const tell = (promise: PromiseName, detail: string): void => {
    breach ??= { promise, detail, atMs: world.scheduler.nowMs() - world.startMs };
    world.note(`BROKEN ${promise}: ${detail}`);
  };
  const failed = (error: unknown) =>
    tell('the process lives on', error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.on('unhandledRejection', failed);
  try {
    const { played, judged } = await play(world, options.moves, () => breach !== null, tell);
    const events = world.scheduler.count();
    const virtualMs = world.scheduler.nowMs() - world.startMs;
    const digest = world.trace.digest();
    return {
      breach,
      played,
      events,
      digest,
      virtualMs,
      cpuMs: cpuSince(began),
      figures: figuresOf(world, options.moves.slice(0, played), judged),
    };
  } finally {
    process.off('unhandledRejection', failed);
    world.end();
  }
}

/** How many moves were played, and how many purchases of honest buyers were judged. */
interface Done {
  readonly played: number;
  readonly judged: number;
}

async function play(world: World, moves: readonly Move[], isBroken: () => boolean, tell: Tell): Promise<Done> {
  const desk = createDesk(world);
  const player = createPlayer(world, desk);
  const honest = createHonestBuyers(world, desk, world.random('honest'));
  const { adversary } = player;
  const history = createChannelHistory(world.chain);
  const calm = createCalm(world);
  const channels = createChannelCheck(world, history, calm, tell);
  watchAnswers(world, adversary, history, tell);
  watchRails(world, tell);
  const charged = createChargedCheck(world, tell);
  const relayer = createRelayerCheck(world, tell);
  const work = createWorkCheck(world, tell);
  const fetchOwed = createServedCheck(world, desk, adversary.claims, tell);

  for (const instance of world.instances) void instance.boot();
  await world.scheduler.runWhile(() => !world.instances.every((one) => one.isUp()), world.scheduler.nowMs() + START_MS);
  honest.start();
  const done = { played: 0, judged: 0 };
  for (const move of moves) {
    if (isBroken()) return done;
    done.played += 1;
    world.note(`MOVE ${JSON.stringify(move)}`);
    calm.note(move);
    await player.play(move);
    relayer.afterMove();
    work.afterMove();
    channels.afterMove();
  }
  if (isBroken()) return done;
  done.judged = checkHonest(world, honest, tell);
  await comeToRest(world, desk, honest);
  await claimAtStop(world, channels.unclaimed);
  relayer.afterMove();
  channels.afterMove(true);
  for (const { name } of world.instances.filter((one) => !one.isUp()))
    tell(
      'the process lives on',
      `${name} does not start in a world that is well: ${world.troubles.at(-1) ?? 'it hangs'}`,
    );
  const hanging = desk.unanswered();
  if (hanging.length > 0) tell('every call is answered', `${hanging.length} hang: ${hanging.slice(0, 4).join(', ')}`);
  for (const row of [...openRows(world), ...channels.unclaimed()]) tell('every payment ends', row);
  charged.atRest();
  checkSums(world, tell);
  if (isBroken()) return done;
  if (!(await letHappen(world, fetchOwed, FETCH_MS)))
    tell('who paid is served', `what is owed was not fetched within ${FETCH_MS / 1000} s`);
  channels.afterMove(true);
  charged.atRest();
  checkTexts(world, tell);
  for (const instance of world.instances) instance.kill();
  if (world.scenario.instances === 1) checkFiles(world, tell);
  return done;
}

function cpuSince(began: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(began);
  return Math.round((user + system) / 1000);
}
