"""Finds places in Swift files where one operator, constant, branch or call can be changed, and changes them.

All mutants of a build are compiled in; WAKU_PUSH_MUTANT=NUMBER in the environment activates one of them. An operator is replaced by one of the same
precedence, so that no expression has to be parsed: `a < b` becomes `a ¬§¶ b`, which is `a < b` unless its mutant is active.
"""

import re
from dataclasses import dataclass

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
            # Neither arrays nor strings have a difference.
            if old == "+" and (code[found.end():].startswith(("[", '"')) or code[:found.start()].endswith(('"', '" '))):
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
    """The operator of a mutant. A comparison asks for its mutant only where that gives another result."""
    if old in COMPARISONS:
        bound = "Equatable" if old in ("==", "!=") else "Comparable"
        return (f"infix operator NAME: ComparisonPrecedence\n"
                f"func NAME <T: {bound}>(left: T, right: T) -> Bool {{\n"
                f"    let plain = left {old} right\n"
                f"    return plain == (left {new} right) || isPlain(NUMBER) ? plain : !plain\n}}\n")
    if old in SUMS:
        times = "".join(
            f"func NAME (left: {time}, right: Duration) -> {time} {{ isPlain(NUMBER) ? left {old} right : left {new} right }}\n"
            for time in ("Instant", "Timestamp", "ContinuousClock.Instant"))
        if old == "-":
            times += ("func NAME (left: Instant, right: Instant) -> Duration {\n"
                      "    isPlain(NUMBER) ? left - right : left.sinceEpoch + right.sinceEpoch\n}\n")
        return (f"infix operator NAME: AdditionPrecedence\n"
                f"func NAME <T: AdditiveArithmetic>(left: T, right: T) -> T {{ isPlain(NUMBER) ? left {old} right : left {new} right }}\n"
                + times)
    precedence = "LogicalConjunctionPrecedence" if old == "&&" else "LogicalDisjunctionPrecedence"
    result = ("left ? right() || !isPlain(NUMBER) : !isPlain(NUMBER) && right()" if old == "&&"
              else "left ? isPlain(NUMBER) || right() : right() && isPlain(NUMBER)")
    return (f"infix operator NAME: {precedence}\n"
            f"func NAME (left: Bool, right: @autoclosure () throws -> Bool) rethrows -> Bool {{\n"
            f"    try {result}\n}}\n")


REACHED_BYTE_COUNT = 4096

SUPPORT = """import Core
import Glibc

private let active = getenv("WAKU_PUSH_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0

/// A byte for each mutant in a file that all processes of a run share: 1 when the mutant would make a difference.
nonisolated(unsafe) private let reached: UnsafeMutablePointer<UInt8>? = getenv("WAKU_PUSH_MUTANTS_REACHED").flatMap { path in
    let file = open(path, O_RDWR | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    return mmap(nil, REACHED_BYTE_COUNT, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0).assumingMemoryBound(to: UInt8.self)
}

/// Whether the mutant is not active. Called where it makes a difference.
@inline(never) func isPlain(_ number: Int) -> Bool {
    reached?[number] = 1
    return number != active
}

func mutated<T>(_ number: Int, _ plain: T, _ changed: T) -> T { isPlain(number) ? plain : changed }

"""


def key(mutant, occurrence):
    """Tells mutants apart without their lines, which move with each change of a file."""
    return f"{mutant.file}: {mutant.kind}: {mutant.before} → {mutant.after}" + (f" ({occurrence})" if occurrence > 1 else "")


def planted(text, mutants):
    """The text of a file with `mutants`, by their numbers; at most one of a line."""
    lines = text.split("\n")
    for number, mutant in mutants.items():
        line = lines[mutant.line - 1]
        new = operator_name(number) if mutant.replacement == "OPERATOR" else mutant.replacement.replace("NUMBER", str(number))
        lines[mutant.line - 1] = line[:mutant.start] + new + line[mutant.end:]
    return "\n".join(lines)


def support(mutants):
    """The text of Mutants.swift of a module with `mutants`, by their numbers."""
    declarations = (mutant.declaration.replace("NAME", operator_name(number)).replace("NUMBER", str(number)) for number, mutant in mutants.items())
    return SUPPORT.replace("REACHED_BYTE_COUNT", str(REACHED_BYTE_COUNT)) + "\n".join(filter(None, declarations))
