import { write, writeOrHide } from './dom.js';
import { Inspection } from './inspection.js';
import { Jobs } from './jobs.js';
import { Log } from './log.js';
import { OwnLocks } from './own-locks.js';
import { ReleaseDialog } from './release-dialog.js';
import { readState } from './server.js';
import { Services } from './services.js';
import { setTime, timeOfDay } from './time.js';

/** Milliseconds between two requests. */
const INTERVAL = 1_000;
/** Milliseconds between two steps of a countdown; slower for users who prefer reduced motion. */
const STEP = matchMedia('(prefers-reduced-motion: reduce)').matches ? 1_000 : 100;

const at = (id) => document.getElementById(id);
const services = new Services(at('services'));
const inspection = new Inspection(at('inspect'), at('inspection'), new ReleaseDialog(at('release')));
const own = new OwnLocks(at('own'), (service, target) => inspection.pick(service, target));
const jobs = new Jobs(at('jobs-panel'), at('jobs'));
const log = new Log(at('log'));
let seen = { log: '', after: 0 };
let shownAt;
let timer;
let isAsking = false;

document.addEventListener('visibilitychange', () => void ask());
setInterval(() => {
  if (document.hidden) return;
  services.tick();
  inspection.tick();
  own.tick();
  jobs.tick();
}, STEP);
void ask();

/** Asks again and again while the page is visible. */
async function ask() {
  clearTimeout(timer);
  if (document.hidden || isAsking) return;
  isAsking = true;
  try {
    show(await readState(seen.log, seen.after));
    showConnection('live');
    writeOrHide(at('problem'), undefined);
  } catch (error) {
    showConnection('no connection');
    const age = shownAt === undefined ? '' : ` What follows is from ${timeOfDay(shownAt)}.`;
    writeOrHide(at('problem'), error.message + age);
  } finally {
    isAsking = false;
    timer = setTimeout(() => void ask(), INTERVAL);
  }
}

function show(state) {
  setTime(state.at);
  shownAt = state.at;
  write(at('instance'), state.instance);
  services.show(state.services, state.at);
  inspection.setServices(state.services);
  own.show(state.services);
  jobs.show(state.jobs, state.services.length > 1);
  // Another instance, or a new run of this one, has another log.
  if (state.log !== seen.log) {
    log.clear();
    seen = { log: state.log, after: 0 };
  }
  for (const event of state.events) {
    log.add(event, state.services.length > 1);
    seen.after = event.id;
  }
}

function showConnection(text) {
  write(at('connection'), text);
  document.body.dataset.connection = text;
}
