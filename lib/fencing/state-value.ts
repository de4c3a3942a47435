import { RedlockConfigError } from '../settings/config.error.js';

// In bytes of UTF-8: every master stores and sends a state as a whole.
const MAX_STATE_BYTES = 16_384;

export function jsonFrom(value: unknown): string {
  const json = stringify(value);
  const bytes = new TextEncoder().encode(json).length;
  if (bytes > MAX_STATE_BYTES) {
    const requirement = `must have at most ${MAX_STATE_BYTES} bytes as JSON, and has ${bytes}: store it elsewhere, and keep its name here`;
    throw new RedlockConfigError('state', value, requirement);
  }
  return json;
}

// An empty text stands for no value.
export function valueFrom(json: string): unknown {
  return json === '' ? undefined : JSON.parse(json);
}

function stringify(value: unknown): string {
  let json: string | undefined;
  try {
    // Its type does not say that functions, symbols and undefined give no text.
    const text: unknown = JSON.stringify(value);
    // NaN and the like give the text of null, which clears the state.
    if (typeof text === 'string' && (text !== 'null' || value === null)) json = text;
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : 'an unknown error';
    throw new RedlockConfigError('state', value, `must be a value that JSON can represent (${why})`);
  }
  if (json !== undefined) return json;
  throw new RedlockConfigError(
    'state',
    value,
    'must be a value that JSON can represent: null, and not undefined, clears it',
  );
}
