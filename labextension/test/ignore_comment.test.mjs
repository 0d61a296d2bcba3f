import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ignoring, nearestLine } from '../lib/ignore_comment.js';
import { linesOf } from '../lib/python_lines.js';

const SLUG = 'some-mistake';
const COMMENT = '  # torchcheck: ignore[some-mistake]';

/** The cell with the comment at a line, or why there is none. */
function written(source, line, code = source.split('\n')[line - 1].trim()) {
  const edit = ignoring(source, line, code, SLUG);
  return typeof edit === 'string'
    ? edit
    : source.slice(0, edit.start) + edit.text + source.slice(edit.end);
}

// Source, line, line with the comment.
const WRITTEN = [
  ['step()', 1, `step()${COMMENT}`],
  ['a()\n  step()  \nb()', 2, `  step()${COMMENT}`],
  ['step()  # my words', 1, `step()  # my words${COMMENT}`],
  ['step()  # noqa', 1, `step()  # noqa${COMMENT}`],
  ['step()  # it ends in \\', 1, `step()  # it ends in \\${COMMENT}`],
  ['step()  # torchcheck: ignore[x]', 1, 'step()  # torchcheck: ignore[x, some-mistake]'],
  ['step()  #torchcheck:ignore[x , y] z', 1, 'step()  #torchcheck:ignore[x , y, some-mistake] z'],
  ['step()  # torchcheck: mute[x]', 1, `step()  # torchcheck: mute[x]${COMMENT}`],
  ['x = f(\n    1,\n)', 2, `    1,${COMMENT}`],
  ['x = 1 + \\\n    f()', 2, `    f()${COMMENT}`],
  ['x = """a\nb"""; step()', 2, `b"""; step()${COMMENT}`],
  ["x = 'a # b'; step()", 1, `x = 'a # b'; step()${COMMENT}`],
  ["x = r'\\'; # '; step()", 1, `x = r'\\'; # '; step()${COMMENT}`],
  ["x = 'it\\'s'; step()", 1, `x = 'it\\'s'; step()${COMMENT}`],
  [`x = f"{d['a']} # {y:>{w}} {{" ; step()`, 1, `x = f"{d['a']} # {y:>{w}} {{" ; step()${COMMENT}`],
  ['x = f"{d["a"]}"; step()', 1, `x = f"{d["a"]}"; step()${COMMENT}`],
  ['x = f"{a!r:{"#"}}"; step()', 1, `x = f"{a!r:{"#"}}"; step()${COMMENT}`],
  ['x = rf"\\{a}"; step()', 1, `x = rf"\\{a}"; step()${COMMENT}`],
  ['x = f"\\N{DASH}"; step()', 1, `x = f"\\N{DASH}"; step()${COMMENT}`],
  ["%%time\n%cd it's\n!ls '''\nstep()", 4, `step()${COMMENT}`],
  ["files = !ls it's\nstep()", 2, `step()${COMMENT}`],
  ["!ls \\\n it's\nstep()", 3, `step()${COMMENT}`],
  ['x = a if b else c', 1, `x = a if b else c${COMMENT}`],
  ['del x', 1, `del x${COMMENT}`],
  ['print (x)', 1, `print (x)${COMMENT}`],
  ['x = (a\n  % b)', 2, `  % b)${COMMENT}`],
  ['x = a % b', 1, `x = a % b${COMMENT}`],
  ['step()  # why?', 1, `step()  # why?${COMMENT}`],
  ['step?\nstep()', 2, `step()${COMMENT}`],
  ['x = """why?\n"""; step()', 2, `"""; step()${COMMENT}`],
  ['x != y', 1, `x != y${COMMENT}`],
  ['größe = é.step()', 1, `größe = é.step()${COMMENT}`]
];

WRITTEN.forEach(([source, line, wanted]) => {
  test(`comment at line ${line} of ${JSON.stringify(source)}`, () => {
    const lines = source.split('\n');
    lines[line - 1] = wanted;
    assert.equal(written(source, line), lines.join('\n'));
  });
});

const NOT_WRITTEN = [
  ['x = 1 + \\\n    f()', 1, 'backslash'],
  ["step(); s = '''a\nb'''", 1, 'string'],
  ["s = '''a\nstep()\nb'''", 2, 'string'],
  ['s = f"""{\nstep()\n}"""', 2, 'string'],
  ["s = 'a\\\nb'", 1, 'string'],
  ['step()  # torchcheck: ignore', 1, 'there'],
  ['step()  # torchcheck: ignore[]', 1, 'there'],
  [`step()  # torchcheck: ignore[x,${SLUG}]`, 1, 'there'],
  ["s = '# torchcheck: ignore[x]'; step()", 1, 'unsure'],
  ["s = '# torchcheck: ignore[x]'; step()  # my words", 1, 'unsure'],
  ['%time step()', 1, 'unsure'],
  ['time step()', 1, 'unsure'],
  ['x = %timeit -o step()', 1, 'unsure'],
  ['step 1', 1, 'unsure'],
  ['step?', 1, 'unsure'],
  ["s = 'a\nstep()", 2, 'unsure'],
  ['step()\nx = (', 1, 'unsure'],
  ["step()\nx = '''", 1, 'unsure'],
  ['step())', 1, 'unsure'],
  ['a()\u2028b()\nstep()', 2, 'unsure']
];

NOT_WRITTEN.forEach(([source, line, why]) => {
  test(`nothing at line ${line} of ${JSON.stringify(source)}`, () => {
    assert.equal(written(source, line), why);
  });
});

test('a line that has moved gets it if no other one reads like it', () => {
  assert.equal(written('# new\na()\nstep()', 2, 'step()'), `# new\na()\nstep()${COMMENT}`);
  assert.equal(written('# new\nstep()\nstep()', 1, 'step()'), 'gone');
  assert.equal(written('step()\nstep()', 2, 'step()'), `step()\nstep()${COMMENT}`);
  assert.equal(written('a()', 1, 'step()'), 'gone');
  assert.equal(written('a()\n', 2, ''), 'gone');
});

test('the nearest line that reads the same is the one', () => {
  assert.equal(nearestLine('step()\na()\nb()\n  step()', 3, 'step()'), 4);
  assert.equal(nearestLine('step()\na()', 9, 'step()'), 1);
  assert.equal(nearestLine('import torch', 9, 'step()'), null);
});

test('what the kernel writes out or cuts is known again', () => {
  assert.equal(nearestLine("a()\ns = '\u202ea'", 1, "s = '\\u202ea'"), 2);
  assert.equal(nearestLine('x =\t1', 1, 'x = 1'), 1);
  const long = `x = ${'a'.repeat(5000)}`;
  assert.equal(nearestLine(long, 1, `${long.slice(0, 1999)}…`), 1);
});

test('a cell of many lines is read soon', () => {
  const source = `${'x = f"{a[\'b\']:>{w}}"  # words\n'.repeat(20_000)}step()`;
  const began = Date.now();
  assert.equal(linesOf(source).length, 20_001);
  assert.ok(Date.now() - began < 2000);
});
