import { chip, element } from './dom.js';
import { seconds, timeOfDay } from './time.js';

const KEPT = 300;
const CAUSES = {
  expired: 'its validity ended before a quorum extended it',
  'owner-changed': 'another process holds it',
  'max-hold': 'it was kept for too long',
  shutdown: 'the instance shut down',
};

/** The events, the latest first. */
export class Log {
  #place;

  constructor(place) {
    this.#place = place;
  }

  clear() {
    this.#place.replaceChildren();
  }

  add(event) {
    const line = describe(event);
    if (!line) return;
    const time = element('time', { datetime: new Date(event.at).toISOString() }, timeOfDay(event.at));
    this.#place.prepend(element('li', { 'data-kind': line.kind }, time, element('span', {}, ...line.parts)));
    if (this.#place.childElementCount > KEPT) this.#place.lastElementChild.remove();
  }
}

/** The kind and the parts of a log line, for events that are worth one. */
function describe(event) {
  switch (event.kind) {
    case 'granted':
      return { kind: 'hand-off', parts: tellOfGrant(event) };
    case 'lost':
      return { kind: 'lost', parts: [chip(event.instance), ` ${sentenceOfLoss(event)}`] };
    case 'master':
      return { kind: event.state, parts: [sentenceOfMaster(event)] };
    case 'quorum':
      return { kind: event.canVote ? 'voting' : 'down', parts: [sentenceOfQuorum(event)] };
    case 'command':
      return { kind: 'command', parts: [`You: ${event.command} ${event.target}`] };
    default:
      return undefined;
  }
}

function tellOfGrant({ resource, instance, previous, waited }) {
  const after = waited < 1 ? '' : ` after a wait of ${seconds(waited)}`;
  if (previous === undefined) return [chip(instance), ` takes ${resource}${after}`];
  return [chip(previous), ' → ', chip(instance), ` ${resource}${after}`];
}

/** The rest of a sentence that begins with the instance. */
export function sentenceOfLoss({ resource, held, cause }) {
  return `lost ${resource} after ${seconds(held)}: ${CAUSES[cause]}`;
}

function sentenceOfQuorum({ canVote, voting }) {
  return canVote ? `A quorum votes: ${voting} masters` : `No quorum: ${voting} voting, nothing new is locked`;
}

function sentenceOfMaster({ number, state, reason, remaining }) {
  if (state === 'voting') return `Master ${number} votes`;
  const time = remaining === undefined ? '' : ` for ${seconds(remaining)}`;
  return `Master ${number} is ${state}${time}${reason ? `: ${reason}` : ''}`;
}
