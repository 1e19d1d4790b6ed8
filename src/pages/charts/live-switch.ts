import { html } from '../html.ts';

/** The note that the page updates itself, with the button that stops it. It is hidden without scripts, because then the page does not update. */
export const LIVE_SWITCH = html`<p class="live" id="live-switch" hidden><span class="dot" aria-hidden="true"></span> <span>Updated every 5 seconds</span> <button type="button" class="quiet">Pause</button></p>`;
