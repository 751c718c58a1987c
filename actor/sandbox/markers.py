"""Takes progress markers out of a program's text and puts calls in their place, so that the program notices nothing of them: its lines have
the numbers with which it was written, and a marker goes to the output even if `sys.stdout` is closed or is another object.

The learner inserts a marker as a line of its own, `print("<nonce>:loaded data", flush=True)`, after a statement and with its indentation
(learner/rollout/instrument.ts). The same text comes out here.
Covered: a program cannot call a marker that was not inserted, and its own lines that look like a marker stay what they are, because they
lack the nonce. Not covered: a determined program finds the nonce in its memory (actor/README.md, markers).
"""

import ast
import io
import os
import re
import sys

from channel import Channel

DESCRIPTOR = 1000  # above the numbers that a program's files get; below limits.OPEN_FILES
PRINTER = "<marker>"  # the name of the printer among the builtins; no program can contain it as a name
SUITES = ("body", "orelse", "handlers", "finalbody", "cases")


class Mark:
    """An inserted line: it follows line `line` of the program with `indent` bytes of indentation, and prints `text` and the values of
    `names`."""

    def __init__(self, line, indent, text, names):
        self.line, self.indent, self.text, self.names = line, indent, text, names


def take_out(text, nonce):
    """Returns (the program without inserted lines, [Mark]). `text`, `nonce`: bytes; without a nonce nothing is inserted."""
    if not nonce or nonce not in text:
        return text, []
    inserted = re.compile(
        rb'([ \t\f]*)(?:__import__\("builtins"\)\.)?print\("(%s:[a-z ]+)"((?:, [A-Za-z_][\w.]*)*), flush=True\)' % re.escape(nonce))
    parts = re.split(rb"(\r\n|\n|\r)", text)
    kept, marks = [], []
    for index in range(0, len(parts), 2):
        found = inserted.fullmatch(parts[index])
        if found:
            marks.append(Mark(len(kept), len(found[1]), found[2].decode(), [name.decode() for name in found[3].split(b", ")[1:]]))
        else:
            kept.append(b"".join(parts[index:index + 2]))
    if kept and inserted.fullmatch(parts[-1]):
        kept[-1] = re.sub(rb"(\r\n|\n|\r)\Z", b"", kept[-1])  # the program had no line break at its end
    return b"".join(kept), marks


def insert(source, marks, name):
    """Returns the syntax tree of the program with a call after each statement that a mark follows."""
    tree = compile(source, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    for index, mark in reversed(list(enumerate(marks))):  # from the end, because several marks can follow one statement
        suite, position = _place(tree.body, mark)
        if suite is not None:
            suite.insert(position + 1, _call(index, mark, suite[position]))
    return tree


def _place(suite, mark):
    """Returns (list of statements, index of the statement that `mark` follows), or (None, 0)."""
    while suite:
        index = max((at for at, each in enumerate(suite) if each.lineno <= mark.line), default=None)
        if index is None:
            return None, 0
        if suite[0].col_offset == mark.indent:
            return suite, index
        suite = _last_suite(suite[index], mark.line)
    return None, 0


def _last_suite(statement, line):
    """Returns the last list of statements in a compound statement that starts up to `line`; None if there is none."""
    found = None
    for field in SUITES:
        for each in [statement] if field in ("body", "orelse", "finalbody") else getattr(statement, field, []):
            body = getattr(each, field if each is statement else "body", None)
            if isinstance(body, list) and body and body[0].lineno <= line:
                found = body
    return found


def _call(index, mark, after):
    """Returns `try: <marker>(index, names…)`, which cannot fail: also not in another process that gets the function pickled."""
    call = ast.parse(f"try: printer({', '.join([str(index), *mark.names])})\nexcept Exception: pass").body[0]
    call.body[0].value.func.id = PRINTER
    for node in ast.walk(call):
        ast.copy_location(node, after)
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = after.end_lineno
            node.col_offset = node.end_col_offset = after.end_col_offset
    return call


def printer(texts):
    """Returns a function that prints texts[index] and values on a line of the program's output. It keeps a descriptor of its own for this."""
    os.dup2(1, DESCRIPTOR, inheritable=False)
    channel, own = Channel(DESCRIPTOR), sys.stdout

    def print_marker(index, *values):
        for stream in (own, sys.stdout):
            if type(stream) is io.TextIOWrapper:  # not the program's own class, which would notice
                try:
                    stream.flush()
                except (OSError, ValueError):
                    pass
        channel.write((" ".join([texts[index], *map(str, values)]) + "\n").encode("utf-8", "backslashreplace"))

    return print_marker
