"""Finds places in Swift files where one operator, constant, branch or call can be changed, and changes them.

All mutants of a build are compiled in; WAKU_PUSH_MUTANT=NUMBER in the environment activates one of them. An operator is replaced by one of the same
precedence, so that no expression has to be parsed: `a < b` becomes `a ¬§¶ b`, which is `a < b` unless its mutant is active.
"""

import re
from dataclasses import dataclass
from pathlib import Path

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
SUMS = {"+": "-", "-": "+"}
LOGIC = {"&&": "||", "||": "&&"}
OPERATOR = re.compile(r"(?<=[\w)\]}!?]) (<=|>=|==|!=|&&|\|\||<|>|\+|-) (?=[\w(\[.!-])")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
CONSTANT = re.compile(r"(?<=static let )(\w+(?:: Int)? = (?:Duration)?(?:\.\w+\()?)(\d[\d_]*)\b(?!\.)")
BRANCH = re.compile(r"^(\s*(?:\} else )?if )(.+)( \{)$")
GUARD = re.compile(r"^(\s*guard )(.+)( else \{.*)$")
CALL = re.compile(r"^(\s+)((?:_ = )?(?:try )?(?:await )?[a-z_][\w.]*(?:\[\w+\]|\.\w+|[?!])*\([^{}]*\))$")
NOT_CALLS = ("if", "guard", "while", "for", "switch", "return", "throw", "init", "super", "case", "defer", "precondition", "assert", "log", "logger")
DIGITS = "§¶±×÷†‡•"


@dataclass
class Mutant:
    file: str
    line: int
    kind: str
    before: str
    after: str
    start: int
    end: int
    replacement: str
    declaration: str = ""

    def text(self):
        return f"{self.file}:{self.line}: {self.kind}: {self.before} → {self.after}"


def operator_name(number):
    digits = ""
    while True:
        digits = DIGITS[number % 8] + digits
        number //= 8
        if number == 0:
            return "¬" + digits


def masked(line):
    """The line with blanks in place of strings and of a comment, at the same positions."""
    line = STRING.sub(lambda found: '"' + "_" * (len(found.group()) - 2) + '"', line)
    comment = line.find("//")
    return line if comment < 0 else line[:comment]


def code_lines(text):
    """Yields (index, line) of lines that have code, without multi-line strings and compile-time conditions."""
    in_string = False
    for index, line in enumerate(text.split("\n")):
        if line.count('"""') % 2:
            in_string = not in_string
            continue
        if not in_string and '"""' not in line and '#"' not in line and not line.lstrip().startswith(("//", "#", "@", "*", "import ")):
            yield index, line


def is_boolean(condition):
    """Whether a condition is one expression, so that it can be negated."""
    if re.search(r"\b(let|var|case)\b|#|\{", condition):
        return False
    depth = 0
    for character in condition:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            return False
    return depth == 0


def candidates(path, name):
    text = path.read_text()
    lines = text.split("\n")
    for index, line in code_lines(text):
        code = masked(line)
        declares = re.match(r"\s*(\w+ )*(func|init|extension|struct|class|enum|protocol|case|typealias|subscript|associatedtype|actor)\b", code)
        make = lambda kind, before, after, start, end, replacement, declaration="": Mutant(
            name, index + 1, kind, before, after, start, end, replacement, declaration)
        if declares:
            continue
        for found in OPERATOR.finditer(code):
            old = found.group(1)
            if " where " in code[:found.start()] or code[found.end():].startswith("nil") or re.search(r"nil$", code[:found.start()]):
                continue
            new = {**COMPARISONS, **SUMS, **LOGIC}[old]
            near = line[max(0, found.start() - 30):found.end() + 30].strip()
            yield make("operator", f"{old} in `{near}`", new, found.start(1), found.end(1), "OPERATOR", declaration_of(old, new))
        if found := CONSTANT.search(code):
            value = int(found.group(2).replace("_", ""))
            yield make("constant", line.strip(), str(value + 1 if value < 10 else value * 2), found.start(2), found.end(2),
                       f"mutated(NUMBER, {value}, {value + 1 if value < 10 else value * 2})")
        if found := BRANCH.match(code):
            start, end = found.span(2)
            condition = line[start:end]
            if is_boolean(found.group(2)):
                yield make("branch", f"if {condition}", "never", start, end, f"({condition}) && isPlain(NUMBER)")
                yield make("branch", f"if {condition}", "always", start, end, f"({condition}) || !isPlain(NUMBER)")
            else:
                yield make("branch", f"if {condition}", "never", start, end, f"{condition}, isPlain(NUMBER)")
        elif (found := GUARD.match(code)) and is_boolean(found.group(2)):
            start, end = found.span(2)
            yield make("branch", f"guard {line[start:end]}", "removed", start, end, f"({line[start:end]}) || !isPlain(NUMBER)")
        elif found := CALL.match(code):
            previous = next((lines[i].rstrip() for i in range(index - 1, -1, -1) if lines[i].strip()), "")
            following = next((lines[i].strip() for i in range(index + 1, len(lines)) if lines[i].strip()), "")
            call = found.group(2)
            first = re.match(r"(?:_ = )?(?:try )?(?:await )?(\w+)", call).group(1)
            begins = previous.endswith(("{", "}", ")")) and not previous.lstrip().startswith(("case", "default", "@", "//"))
            if first not in NOT_CALLS and ".logger." not in call and ".errors.log(" not in call and begins and call.count("(") == call.count(")") and not following.startswith((".", "?", "+", "&", "|")):
                start, end = found.span(2)
                yield make("call", line.strip(), "removed", start, end, f"if isPlain(NUMBER) {{ {line[start:end]} }}")


def declaration_of(old, new):
    if old in COMPARISONS:
        bound = "Equatable" if old in ("==", "!=") else "Comparable"
        return (f"infix operator NAME: ComparisonPrecedence\n"
                f"func NAME <T: {bound}>(left: T, right: T) -> Bool {{ isPlain(NUMBER) ? left {old} right : left {new} right }}\n")
    if old in SUMS:
        sign = {"+": ("right", ".zero - right"), "-": (".zero - right", "right")}[old]
        return (f"infix operator NAME: AdditionPrecedence\n"
                f"func NAME <T: AdditiveArithmetic>(left: T, right: T) -> T {{ isPlain(NUMBER) ? left {old} right : left {new} right }}\n"
                f"func NAME <T: InstantProtocol>(left: T, right: T.Duration) -> T {{\n"
                f"    left.advanced(by: isPlain(NUMBER) ? {sign[0]} : {sign[1]})\n}}\n")
    precedence = "LogicalConjunctionPrecedence" if old == "&&" else "LogicalDisjunctionPrecedence"
    return (f"infix operator NAME: {precedence}\n"
            f"func NAME (left: Bool, right: @autoclosure () throws -> Bool) rethrows -> Bool {{\n"
            f"    isPlain(NUMBER) ? try left {old} right() : try left {new} right()\n}}\n")


SUPPORT = """import Glibc

private let active = getenv("WAKU_PUSH_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0

/// Whether the mutant is not active.
@inline(never) func isPlain(_ number: Int) -> Bool { number != active }

func mutated<T>(_ number: Int, _ plain: T, _ changed: T) -> T { isPlain(number) ? plain : changed }

"""


def plant(root, numbered):
    """Writes the mutants into the files under `root`, and the support of each module that has some.

    `numbered`: number → mutant; at most one mutant of a line.
    """
    by_file = {}
    for number, mutant in numbered.items():
        by_file.setdefault(mutant.file, []).append((number, mutant))
    support = {}
    for file, mutants in by_file.items():
        path = Path(root, file)
        lines = path.read_text().split("\n")
        module = "/".join(file.split("/")[:3])
        for number, mutant in mutants:
            line = lines[mutant.line - 1]
            name = operator_name(number)
            new = name if mutant.replacement == "OPERATOR" else mutant.replacement.replace("NUMBER", str(number))
            lines[mutant.line - 1] = line[:mutant.start] + new + line[mutant.end:]
            support.setdefault(module, []).append(mutant.declaration.replace("NAME", name).replace("NUMBER", str(number)))
        path.write_text("\n".join(lines))
    for module, declarations in support.items():
        Path(root, module, "Mutants.swift").write_text(SUPPORT + "\n".join(filter(None, declarations)))
