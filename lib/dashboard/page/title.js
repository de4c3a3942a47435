/** The name of a lock, or of a permit with its slot. */
export function titleOf({ resource, slot }) {
  return slot === undefined ? resource : `${resource} #${slot}`;
}
