import { Command, CommanderError } from 'commander';
import { LockError } from '../index.js';
import { contextOf, type CommandContext, MASTERS_VARIABLE, UsageError } from './session.js';
import { doctor } from './doctor.js';
import { inspect } from './inspect.js';
import { jobs } from './jobs.js';
import { list } from './list.js';
import { release } from './release.js';
import type { Terminal } from './terminal.js';

const EXIT = Object.freeze({ fine: 0, problem: 1, usage: 2 });

const INTRODUCTION = [
  'Looks at the masters of nestjs-redlock and at the locks on them, and acts on them.',
  `Masters: --master once for each, --masters-file, or the variable ${MASTERS_VARIABLE} (separated by commas). A URL with ` +
    'a password is better kept in the file or the variable than on the command line. Credentials are never shown.',
  'Exit status: 0 if all is well, 1 if there is a problem, 2 if it was called in a way that cannot work.',
].join('\n\n');

const KEY = 'name of the lock as the application gives it, without the prefix';

export async function run(args: readonly string[], version: string, terminal: Terminal): Promise<number> {
  let status: number = EXIT.fine;
  // Commander gives the arguments, the options and itself.
  const acting: Acting =
    (command) =>
    async (...given) => {
      status = await command(
        contextOf(given.at(-2) as Parameters<typeof contextOf>[0], terminal),
        ...(given.slice(0, -1) as never[]),
      );
    };
  const program = programOf(version, terminal, acting);
  try {
    await program.parseAsync(args, { from: 'user' });
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage;
    if (!(error instanceof UsageError || error instanceof LockError)) throw error;
    terminal.complain(`error: ${error.message}`);
    return EXIT.usage;
  }
}

type Acting = (
  command: (context: CommandContext, ...given: never[]) => Promise<number>,
) => (...given: unknown[]) => Promise<void>;

function programOf(version: string, terminal: Terminal, acting: Acting): Command {
  const program = new Command('nestjs-redlock')
    .description(INTRODUCTION)
    .version(version)
    .showHelpAfterError('npx nestjs-redlock --help shows the commands, and --help after a command its options')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.print(text.trimEnd()),
      writeErr: (text) => terminal.complain(text.trimEnd()),
      outputError: (text, write) => write(`${withoutValues(text).trimEnd()}${hintAt(text)}\n`),
    });
  common(program.command('doctor'))
    .description('examine the masters: a table, what to change, and a verdict; exit status 1 if there is a problem')
    .option('--no-restart-guard', 'the applications have restartGuard: false, so masters vote without a marker')
    .option('--master-timeout <duration>', 'masterTimeout of the applications (default: 250ms)')
    .action(acting(doctor));
  common(program.command('inspect'))
    .description(
      'show what each master reports about one lock, and which permits of its name are taken; exit status 1 if too few ' +
        'masters answer',
    )
    .argument('<key>', KEY)
    .option('--permits <number>', 'show all permits of this name, as many as the application gives, and not its lock')
    .action(acting(inspect));
  common(program.command('list'))
    .description(
      'list the locks and permits that are held, by SCAN (the user needs +scan); exit status 1 if a master does not answer',
    )
    .argument('[pattern]', 'of their names, such as "order:*"', '*')
    .action(acting(list));
  common(program.command('jobs'))
    .description(
      'show the last run of each scheduled job, by SCAN (the user needs +scan), or the last runs of one job; exit status ' +
        '1 if too few masters answer, or if the job has no record',
    )
    .argument('[name]', 'of a job, as its decorator gives it')
    .action(acting(jobs));
  common(program.command('release'))
    .description('take a lock away from its holder, on all masters, and print a line for the audit')
    .argument('<key>', KEY)
    .option(
      '--permit <slot>',
      'release the permit in this slot, from 0, and not the lock of this name; inspect shows the slots',
    )
    .option('--yes', 'do not ask')
    .option(
      '--at-once',
      'free it now, for a holder that is certainly gone; otherwise its time is not extended any more',
    )
    .action(acting(release));
  return program;
}

function common(command: Command): Command {
  return command
    .option(
      '-m, --master <url>',
      'redis://, rediss://, redis+sentinel:// or redis+cluster:// URL, or path of a unix socket (repeatable)',
      append,
    )
    .option('--masters-file <path>', 'a file with one URL on each line; lines that begin with # are comments')
    .option('--prefix <text>', 'keyPrefix of the locks (default: "lock:")')
    .option('--timeout <duration>', 'how long one answer may take', '2s')
    .option('--json', 'print JSON');
}

function append(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

// Each command has these options, so one that is unknown stands before the command.
const OF_EACH_COMMAND = /unknown option '(?:-m|--(?:master|masters-file|prefix|timeout|json))\b/;

function hintAt(message: string): string {
  if (OF_EACH_COMMAND.test(message)) {
    return ': options follow the command, as in npx nestjs-redlock doctor --master <url>';
  }
  return /too many arguments/.test(message) ? ' Give each master as --master <url>.' : '';
}

// An argument in the wrong place may be a URL with a password.
function withoutValues(message: string): string {
  return /@|%40|:\/\//i.test(message) ? message.replace(/'.*'/s, "'***'") : message;
}
