/** Frankfurt's wall clock, by which the ECB publishes. */
const FRANKFURT = new Intl.DateTimeFormat('en-CA', {
  timeZone: 'Europe/Berlin',
  ...({ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' } as const),
  hourCycle: 'h23',
});

/** The ECB publishes about 16:00 on working days (https://www.ecb.europa.eu, "Euro foreign exchange reference rates"). */
const PUBLISHED_AT = '16:00';
/** Between these times the new file is requested every five minutes; otherwise once an hour, in case of an unexpected holiday or a late file. */
const LOOK_OUT = { from: '15:45', until: '17:30', everyMs: 5 * 60_000, elseMs: 3_600_000 };

const DAY_MS = 86_400_000;

/** Today in Frankfurt, `YYYY-MM-DD`. */
export function frankfurtDate(nowMs: number): string {
  return wallClock(nowMs).date;
}

/** Whether a file whose newest day is `newest` and that was read at `readAtMs` should be read again now. */
export function isDue(newest: string, readAtMs: number, nowMs: number): boolean {
  if (newest >= newestExpected(nowMs)) return false;
  const { time } = wallClock(nowMs);
  const interval = time >= LOOK_OUT.from && time <= LOOK_OUT.until ? LOOK_OUT.everyMs : LOOK_OUT.elseMs;
  return nowMs - readAtMs >= interval;
}

/** The newest weekday whose publication is due; on a holiday it is a day too new, which costs one request an hour and gives no wrong answer. */
function newestExpected(nowMs: number): string {
  const { date, time } = wallClock(nowMs);
  let day = Date.parse(`${date}T00:00:00Z`) - (time >= PUBLISHED_AT ? 0 : DAY_MS);
  while ([0, 6].includes(new Date(day).getUTCDay())) day -= DAY_MS;
  return new Date(day).toISOString().slice(0, 10);
}

function wallClock(nowMs: number): { date: string; time: string } {
  const parts = Object.fromEntries(FRANKFURT.formatToParts(nowMs).map(({ type, value }) => [type, value]));
  return { date: `${parts.year}-${parts.month}-${parts.day}`, time: `${parts.hour}:${parts.minute}` };
}
