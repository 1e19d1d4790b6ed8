import { html } from '../html.ts';

/** Says that the page keeps itself up to date, and stops it; without scripts it does not, so the switch stays hidden. */
export const LIVE_SWITCH = html`<p class="live" id="live-switch" hidden><span class="dot" aria-hidden="true"></span> <span>Updated every 5 seconds</span> <button type="button" class="quiet">Pause</button></p>`;
