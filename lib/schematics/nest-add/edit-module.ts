import type ts from 'typescript';
import { IMPORT, registration } from './templates.js';
import { apply, type Change, endWithComments, indentationAt, isFirstOnLine, isPlain, replace } from './text-changes.js';
import type { TypeScript } from './typescript.js';

/** The changed text of the module, or why it has to be changed by hand. */
export type Edit = { readonly text: string } | { readonly unusual: string };

/** How the file is written. */
interface Style {
  readonly quote: string;
  readonly unit: string;
  readonly semicolon: string;
}

/**
 * Adds the registration to the imports of a module, and the import to its file. Changes only what is certain to mean
 * the same in every such file: a class with `@Module({ imports: [...] })`, or without `imports`.
 *
 * @param className the class of the module; undefined: the only class with `@Module` in this file
 */
export function registerIn(typescript: TypeScript, text: string, className: string | undefined): Edit {
  const file = typescript.createSourceFile('module.ts', text, typescript.ScriptTarget.Latest, true);
  const found = metadataOf(typescript, file, className);
  if ('unusual' in found) return found;
  const expanded = expandedText(file, found);
  if (expanded !== undefined) return registerIn(typescript, expanded, className);
  const style = styleOf(typescript, file, found);
  const imported = importOf(typescript, file, style);
  if ('unusual' in imported) return imported;
  const registered = registrationIn(typescript, file, found, style);
  if ('unusual' in registered) return registered;
  return { text: apply(text, [...imported, registered]) };
}

function metadataOf(
  typescript: TypeScript,
  file: ts.SourceFile,
  className: string | undefined,
): ts.ObjectLiteralExpression | { unusual: string } {
  const modules = file.statements.filter(typescript.isClassDeclaration).flatMap((declaration) => {
    const decorator = (typescript.getDecorators(declaration) ?? []).find(({ expression }) => {
      return typescript.isCallExpression(expression) && expression.expression.getText(file) === 'Module';
    });
    return decorator ? [{ name: declaration.name?.text, call: decorator.expression as ts.CallExpression }] : [];
  });
  const chosen = className === undefined ? modules : modules.filter(({ name }) => name === className);
  const [module] = chosen;
  if (!module) return { unusual: `it has no ${className ?? 'class'} with @Module` };
  if (chosen.length > 1) return { unusual: `it has ${chosen.length} classes with @Module` };
  const [metadata] = module.call.arguments;
  if (!metadata || !typescript.isObjectLiteralExpression(metadata))
    return { unusual: 'the metadata is not written between the parentheses of @Module' };
  if (metadata.properties.some(typescript.isSpreadAssignment))
    return { unusual: 'the metadata contains other metadata with "..."' };
  return metadata;
}

/** The text with each property of the metadata on a line of its own, unless it has line breaks or comments. */
function expandedText({ text }: ts.SourceFile, metadata: ts.ObjectLiteralExpression): string | undefined {
  const source = metadata.getText();
  const { properties } = metadata;
  if (properties.length === 0 || source.includes('\n') || !isPlain(metadata, properties)) return undefined;
  const base = indentationAt(text, metadata.getStart());
  const lines = properties.map((property) => `${base}  ${property.getText()},`);
  return apply(text, [replace(metadata, ['{', ...lines, `${base}}`].join('\n'))]);
}

function styleOf(typescript: TypeScript, file: ts.SourceFile, metadata: ts.ObjectLiteralExpression): Style {
  const last = file.statements.filter(typescript.isImportDeclaration).at(-1);
  const [first] = metadata.properties;
  const base = indentationAt(file.text, metadata.getStart(file));
  const inner =
    first && isFirstOnLine(file.text, first.getStart(file)) && indentationAt(file.text, first.getStart(file));
  return {
    quote: last?.moduleSpecifier.getText(file).startsWith('"') ? '"' : "'",
    unit: inner && inner.length > base.length ? inner.slice(base.length) : '  ',
    semicolon: !last || last.getText(file).endsWith(';') ? ';' : '',
  };
}

/** The import declaration, unless the file has it. */
function importOf(typescript: TypeScript, file: ts.SourceFile, style: Style): Change[] | { unusual: string } {
  const imports = file.statements.filter(typescript.isImportDeclaration);
  const own = imports.some((declaration) => {
    const bindings = declaration.importClause?.namedBindings;
    if ((declaration.moduleSpecifier as ts.StringLiteral).text !== IMPORT.from) return false;
    if (/^import\s+type\b/.test(declaration.getText(file))) return false;
    if (!bindings || !typescript.isNamedImports(bindings)) return false;
    return bindings.elements.some((each) => each.name.text === IMPORT.name && !each.propertyName && !each.isTypeOnly);
  });
  if (own) return [];
  if (new RegExp(`\\b${IMPORT.name}\\b`).test(file.text))
    return { unusual: `it uses the name ${IMPORT.name} for something else` };
  const line = `import { ${IMPORT.name} } from ${style.quote}${IMPORT.from}${style.quote}${style.semicolon}`;
  const last = imports.at(-1);
  if (!last) {
    const start = /^#!.*\r?\n/.exec(file.text)?.[0].length ?? 0;
    return [{ start, end: start, text: `${line}\n` }];
  }
  const end = endWithComments(typescript, file.text, last.end);
  return [{ start: end, end, text: `\n${line}` }];
}

function registrationIn(
  typescript: TypeScript,
  file: ts.SourceFile,
  metadata: ts.ObjectLiteralExpression,
  { quote, unit }: Style,
): Change | { unusual: string } {
  const { text } = file;
  const lines = registration(quote, unit);
  const base = indentationAt(text, metadata.getStart(file));
  const list = (indentation: string, elements: readonly string[]) =>
    ['[', ...elements.map((each) => `${indentation}${unit}${each},`), `${indentation}]`].join('\n');
  const call = (indentation: string) => lines.join(`\n${indentation}${unit}`);

  const property = metadata.properties.find(
    (each) => each.name?.getText(file).replaceAll(/[[\]'"]/g, '') === 'imports',
  );
  if (!property) {
    const [first] = metadata.properties;
    const imports = `imports: ${list(base + unit, [call(base + unit)])},`;
    if (!first) return replace(metadata, `{\n${base}${unit}${imports}\n${base}}`);
    const start = first.getStart(file);
    const gap = isFirstOnLine(text, start) ? `\n${base}${unit}` : ' ';
    return { start, end: start, text: `${imports}${gap}` };
  }
  if (!typescript.isPropertyAssignment(property) || !typescript.isArrayLiteralExpression(property.initializer))
    return { unusual: 'its imports are not a list in square brackets' };

  const array = property.initializer;
  const indentation = indentationAt(text, array.getStart(file));
  const last = array.elements.at(-1);
  if (isPlain(array, array.elements) && (!last || !array.getText(file).includes('\n'))) {
    const elements = array.elements.map((element) => element.getText(file));
    return replace(array, list(indentation, [...elements, call(indentation)]));
  }
  const start = last ? last.end : array.getStart(file) + 1;
  const end = last ? endWithComments(typescript, text, array.elements.end) : start;
  const between = last ? text.slice(start, end) : '';
  const comma = last && !array.elements.hasTrailingComma ? ',' : '';
  const isClosedBelow = text.slice(end, array.end).includes('\n');
  const close = isClosedBelow ? '' : `\n${indentation}`;
  return { start, end, text: `${comma}${between}\n${indentation}${unit}${call(indentation)},${close}` };
}
