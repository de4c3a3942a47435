import { chip, element, write } from './dom.js';
import { Instances } from './instances.js';
import { Locks } from './locks.js';
import { Log, sentenceOfLoss } from './log.js';
import { Masters } from './masters.js';
import { setTime, timeOfDay } from './time.js';
import { TimelineChart } from './timeline.js';

/** Milliseconds between two steps of a countdown; slower for users who prefer reduced motion. */
const STEP = matchMedia('(prefers-reduced-motion: reduce)').matches ? 1_000 : 100;

const at = (id) => document.getElementById(id);
const masters = new Masters(at('masters'));
const locks = new Locks(at('locks'));
const instances = new Instances(at('instances'));
const log = new Log(at('log'));
const timeline = new TimelineChart(at('timeline'));
const counts = { handOffs: 0, losses: 0 };

at('with-hand-offs').addEventListener('change', ({ target }) => {
  at('log').classList.toggle('without-hand-offs', !target.checked);
});

const source = new EventSource('events');
source.addEventListener('open', () => showConnection('live'));
// The source reconnects by itself, and then receives the whole history.
source.addEventListener('error', () => showConnection('connection lost'));
source.addEventListener('history', ({ data }) => {
  log.clear();
  timeline.reset();
  Object.assign(counts, { handOffs: 0, losses: 0 });
  at('latest-loss').hidden = true;
  for (const event of JSON.parse(data)) add(event);
});
source.addEventListener('event', ({ data }) => {
  add(JSON.parse(data));
});
source.addEventListener('snapshot', ({ data }) => show(JSON.parse(data)));

setInterval(() => {
  if (document.hidden) return;
  masters.tick();
  locks.tick();
  timeline.tick();
}, STEP);

function add(event) {
  log.add(event);
  timeline.add(event);
  if (event.kind === 'granted' && event.previous !== undefined) counts.handOffs++;
  if (event.kind === 'lost') showLoss(event);
  write(at('hand-offs'), String(counts.handOffs));
  write(at('losses'), String(counts.losses));
  at('losses').dataset.some = counts.losses > 0;
}

function show(snapshot) {
  setTime(snapshot.at);
  timeline.setLanes(
    snapshot.locks.map(({ resource }) => resource),
    snapshot.masters.map(({ number }) => number),
  );
  masters.show(snapshot.masters, snapshot.at);
  locks.show(snapshot.locks, snapshot.masters);
  instances.show(snapshot.instances);
  const voting = snapshot.masters.filter(({ state }) => state === 'voting').length;
  const pill = at('quorum');
  write(pill, `${snapshot.canVote ? 'Quorum' : 'No quorum'}: ${voting} of ${snapshot.masters.length} masters vote`);
  pill.dataset.state = snapshot.canVote ? 'voting' : 'down';
}

function showConnection(text) {
  write(at('connection'), text);
  document.body.dataset.connection = text;
}

/** The loss stays visible, and a screen reader announces it at once. */
function showLoss(event) {
  counts.losses++;
  const title = element('strong', {}, `Latest loss, ${timeOfDay(event.at)}: `);
  at('latest-loss').replaceChildren(title, chip(event.instance), ` ${sentenceOfLoss(event)}`);
  at('latest-loss').hidden = false;
}
