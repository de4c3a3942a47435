import { execFileSync } from 'node:child_process';

/** The processor of the clients, once everything else is pinned to another one. */
let clients;

/**
 * Pins this process and all that it starts, servers above all, to one processor, and leaves another one to the clients.
 * Without this, the scheduler decides in each round anew which processes share a processor.
 *
 * @returns what was pinned, as the head of a table says it
 */
export function pinProcessors() {
  const [server, client] = processors();
  if (client === undefined) return 'not pinned to processors, for want of taskset or of a second processor';
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', server, String(process.pid)], { stdio: 'ignore' });
  clients = client;
  return `clients pinned to processor ${client}, servers and all else to processor ${server}`;
}

/** The command that starts a program as a client: on the processor that is reserved for clients, if one is. */
export function asClient(command) {
  return clients === undefined ? command : ['taskset', '--cpu-list', clients, ...command];
}

/** Numbers of the processors that this process may use, for example from a list as `0-2,5`. */
function processors() {
  let output;
  try {
    output = execFileSync('taskset', ['--cpu-list', '--pid', String(process.pid)], { encoding: 'utf8' });
  } catch {
    return [];
  }
  const [, list] = output.trim().split(': ');
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
  });
}
