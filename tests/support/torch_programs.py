"""Random small specs: blocks of options, loops, branches and chains, used several times with other numbers.

Loops fill containers together, branches own something else at one address, values are carried through loops (tensors,
numbers, functions, none), and what is required is said with `and`, `or` and `not`.
"""

from random import Random

HEAD = """
import std { Linear, LayerNorm, RMSNorm, gelu, relu, silu, tanh }

dim batch

fn mixed(by = 0.5)(x [...], y [...]) -> [...] {
  return x * by - y
}

layer Scale(n, start = 1.0)(x [..., n]) -> [..., n] {
  weight: param [n] ~ constant(start)
  return x * .weight
}
"""
FUNCTIONS = ("gelu", "relu", "silu", "tanh", "sin", "abs")
WEIGHTS = (
    "param [n]",
    "param [1] ~ constant(1.5)",
    "frozen param [n] = 0.5",
    "frozen param [n] = arange(n) / n",
    "frozen param [n] = pick(axis = 0, index = 1)(transpose(expand([n, 2])(reshape([n, 1])(arange(n) + 0.5))))",
    "buffer [n] = 2.5",
    "buffer [1]",
)
REQUIRED = (
    "n > 1 and k < 90",
    "n > 100 or k < 90 and not (k == 77)",
    "not (n == 1 or k == 99)",
    "(flag or k != 66) and n != 2",
)
LAYERS = ("Linear(n, n)", "Linear(n, n, bias = {flag})", "LayerNorm(n)", "RMSNorm(n)", "Scale(n)", "Scale(n, {real})")


class Program:
    """Writes a spec; every value is real [batch, n]. Names are never used twice."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.count = 0
        self.values: list[str] = []
        self.carried: list[str] = []
        self.indices: list[str] = []
        self.blocks: list[str] = []
        self.containers: list[str] = []
        self.layers = list(LAYERS)
        self.optional = False

    def text(self) -> str:
        picks = [self.pick(f"Pick{i}") for i in range(self.random.randint(0, 2))]
        parts = [self.block(f"Part{i}") for i in range(self.random.randint(1, 3))]
        net = self.block("Net", last=True)
        whole = "\n".join([*picks, *parts, net])
        words = [w for w in ("Linear", "LayerNorm", "RMSNorm", "gelu", "relu", "silu", "tanh") if f"{w}" in whole]
        return HEAD.replace("Linear, LayerNorm, RMSNorm, gelu, relu, silu, tanh", ", ".join(words)) + "\n" + whole

    def pick(self, name: str) -> str:
        """A layer with one tensor or another at an address."""
        condition = self.one("flag", "k > 1", "k % 2 == 0", "flag and k > 1", "not flag or k == 2")
        lines = [f"layer {name}(n, k, flag)(x [..., n]) -> [..., n] {{"]
        one, other = (self.one(*WEIGHTS) for _ in range(2))
        if self.chance(0.5):
            lines += [f"  w: {one} if {condition}", f"  w: {other} if not ({condition})"]
        else:
            lines += [f"  if {condition} {{", f"    w: {one}", "  } else {", f"    w: {other}", "  }"]
        scaled = "x * .w"
        if self.chance(0.4):
            lines.append(f"  v: {self.one(*WEIGHTS)} if {condition}")
            scaled = f"(x * .w + .v if {condition} else x * .w)"
        lines += [f"  return {scaled} * k if flag else {scaled} - k", "}", ""]
        self.layers += [f"{name}(n, {{k}}, {{flag}})"] * 2
        return "\n".join(lines)

    def name(self, word: str) -> str:
        self.count += 1
        return f"{word}{self.count}"

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # Expressions

    def number(self) -> str:
        rounds = [text for i in self.indices for text in (i, f"({i} + 1)")]
        return self.one("0.5", "2", "-1.5", "k", "(k + 1)", "n", "(1 / n)", *rounds)

    def condition(self) -> str:
        """What a definition's numbers or the round of a loop decide."""
        index = [f"{i} {c}" for i in self.indices for c in ("> 0", "% 2 == 0", "!= 1", "== k")]
        numbers = ("k > 1", "k % 2 == 0", "n > 100", "flag and k > 1", "flag or k == 2")
        found = self.one("flag", "not flag", *numbers, *index, *index)
        if self.optional and self.chance(0.2):
            return self.one("extra != none", "extra == none")
        return found

    def settled(self) -> str:
        """A condition that owning may depend on."""
        while "extra" in (found := self.condition()):
            pass
        return found

    def layer(self) -> str:
        return self.owned(self.address())

    def address(self) -> str:
        address = self.name("a")
        if self.chance(0.3):
            address = self.one(f"{address}.b", f"{address}.layer.c", f'{address}."out-put"', f"{address}.self")
        if self.chance(0.03):
            address = self.one("type", "train.half") + f".{address}"
        if self.indices and self.chance(0.5):
            if not self.containers or self.chance(0.3):
                self.containers.append(self.name("c"))
            container = self.random.choice(self.containers)
            first, *rest = self.indices
            return f"{container}[{first}].{address}" + "".join(f"[{i}]" for i in rest)
        return address + "".join(f"[{i}]" for i in self.indices)

    def owned(self, address: str) -> str:
        if self.blocks and self.chance(0.35):
            return f"{address}: {self.use(self.random.choice(self.blocks))}"
        k = self.one("1", "2", "k", *self.indices)
        made = self.one(*self.layers).format(flag=self.settled(), real=self.one("0.5", "2.0"), k=k)
        if self.chance(0.1):
            made = f"(LayerNorm if {self.settled()} else RMSNorm)(n)"
        return f"{address}: {self.one('', '', '', 'frozen ')}{made}"

    def use(self, block: str) -> str:
        k = self.one("k", "1", "2", "3", *self.indices, *[f"{i} + k" for i in self.indices])
        flag = self.one("flag", "true", "false", self.settled())
        f = self.one("f", *FUNCTIONS[:4])
        inputs = f"(_, {self.value()})" if self.chance(0.4) else ""
        return f"{block}(n, {k}, {flag}, {f}){inputs}"

    def value(self) -> str:
        return self.random.choice(self.values)

    def step(self, depth: int) -> str:
        kind = self.random.random()
        if kind < 0.3:
            step = self.layer()
            if self.chance(0.25):
                return f"{step} if {self.settled()}"
            if self.chance(0.1):
                return f"{step} if {self.settled()} else {self.layer()}"
            if self.chance(0.15):
                address, condition = self.address(), self.settled()
                one, other = self.owned(address), self.owned(address)
                return f"{one} if {condition} " + self.one(f"else {other}", f"|> {other} if not ({condition})")
            if self.chance(0.25):
                return self.repeated(depth)
            return step
        if kind < 0.5:
            mixed = f"mixed({self.one('', 'by = 2.0', '0.1')})(_, {self.value()})"
            step = self.one(*FUNCTIONS, "f", mixed, "max(_, 0)")
            return step + self.one("", "", f" if {self.settled()}", f" if {self.settled()} else relu", " for r in 0..2")
        if kind < 0.6 and depth:
            return f"+ ({self.chain(depth - 1)})"
        if kind < 0.65:
            return f"mixed(_, _ |> {self.one(*FUNCTIONS)})"
        step = self.one("+ ", "- ", "* ") + self.one(self.value(), self.number(), self.number())
        return step + self.one("", "", f" if {self.settled()}")

    def repeated(self, depth: int) -> str:
        index = self.name("i")
        self.indices.append(index)
        step = self.layer()
        option = self.one("", f" if {self.settled()}")
        self.indices.pop()
        first = self.one("0", "0", "1", "k - 1")
        return f"{step}{option} for {index} in {first}..{self.one('2', '3', 'k', 'k + 1')}"

    def chain(self, depth: int) -> str:
        steps = [self.step(depth) for _ in range(self.random.randint(1, 5))]
        return " |> ".join([self.value(), *steps])

    def expression(self, depth: int) -> str:
        kind = self.random.random()
        if kind < 0.6:
            return self.chain(depth)
        if kind < 0.75:
            return f"{self.value()} {self.one('+', '*', '-')} {self.value()} if {self.condition()} else {self.value()}"
        if kind < 0.85:
            return f"mixed({self.value()}, {self.value()} * {self.number()})"
        return f"{self.value()} * {self.number()} + {self.value()}"

    # Statements

    def statements(self, depth: int, margin: str) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.5 or not depth:
                word = self.name("v")
                lines.append(f"{margin}{word} = {self.expression(1)}")
                self.values.append(word)
            elif kind < 0.75:
                lines += self.branch(depth - 1, margin)
            else:
                lines += self.loop(depth - 1, margin)
        return lines

    def branch(self, depth: int, margin: str) -> list[str]:
        word, condition = self.name("v"), self.settled()
        known, lines = list(self.values), [f"{margin}if {condition} {{"]
        both = self.address()
        for i in range(2):
            if self.chance(0.5):
                lines.append(f"{margin}  {word}{'ab'[i]} = {self.value()} |> {self.owned(both)}")
                self.values.append(f"{word}{'ab'[i]}")
            lines += self.statements(depth, margin + "  ")
            carries = self.indices and self.carried and self.chance(0.5)
            if carries:
                carried = self.random.choice(self.carried)
                lines.append(f"{margin}  {carried} = {carried} * 0.5 + {self.value()}")
            lines.append(f"{margin}  {word} = {self.all_since(known)}")
            self.values = list(known)
            lines.append(f"{margin}}}" if i else f"{margin}}} else {{")
        self.values.append(word)
        return lines

    def loop(self, depth: int, margin: str) -> list[str]:
        word, index = self.name("h"), self.name("i")
        lines = [f"{margin}{word} = {self.expression(0)}"]
        self.values.append(word)
        known = list(self.values)
        before, start, end, after = self.carrying(word, margin)
        lines += before
        lines.append(f"{margin}for {index} in {self.one('0', '0', '1')}..{self.one('2', '3', 'k', 'k + 1')} {{")
        self.indices.append(index)
        self.carried.append(word)
        lines += start
        lines += self.statements(depth, margin + "  ")
        lines.append(f"{margin}  {word} = {word} * 0.5 + tanh({self.all_since(known)}) |> {self.step(0)}")
        lines += [line.replace("CONDITION", self.settled()) for line in end]
        self.indices.pop()
        self.carried.pop()
        self.values = [*known, *[line.split()[0] for line in after]]
        lines.append(f"{margin}}}")
        return lines + after

    def carrying(self, word: str, margin: str) -> tuple[list[str], list[str], list[str], list[str]]:
        """Lines that carry more than `word` through a loop: before it, at the start and the end of it, after it."""
        kind = self.random.random()
        inside = margin + "  "
        name, one, last = self.name("s"), self.name("v"), self.name("v")
        if kind < 0.3:  # a tensor or none
            start = [f"{inside}{one} = {word} * {name} if {name} != none else {word} - 0.25"]
            end = self.one(
                f"{name} = {one}",
                f"{name} = {one} if CONDITION",
                f"{name} = {one} if {name} == none else {one} + {name}",
                f"if CONDITION {{ {name} = {one} }}",
                f"if CONDITION {{ {name} = {one} }} else {{ {name} = none }}",
            )
            after = [f"{margin}{last} = {word} + {name} if {name} != none else {word}"]
            first = self.one("none", "none", f"{word} * 0.5")
        elif kind < 0.5:  # a number, or none
            start = [f"{inside}{one} = {word} * {name} if {name} != none else {word} * 0.1"]
            end = self.one(
                f"{name} = {name} * 0.5 + 1 if {name} != none else 2", f"{name} = 0.5 if CONDITION", f"{name} = 3"
            )
            after = [f"{margin}{last} = {word} - {name} if {name} != none else {word}"]
            first = self.one("none", "1", "2.5")
        elif kind < 0.65:  # a function
            start = [f"{inside}{one} = {name}({word})"]
            end = f"{name} = {self.one(*FUNCTIONS[:4])} if CONDITION else {self.one(*FUNCTIONS[:4])}"
            after = [f"{margin}{last} = {name}({word} * 0.5)"]
            first = self.one("f", *FUNCTIONS[:4])
        else:
            return [], [], [], []
        self.values.append(one)
        return [f"{margin}{name} = {first}"], start, [f"{inside}{end}"], after

    def all_since(self, known: list[str]) -> str:
        """A value made of all that was bound since, as nothing may be unused."""
        new = [f"{value} * {self.number()}" for value in self.values if value not in known]
        return " + ".join([*new, f"({self.expression(0)})"])

    def block(self, name: str, last: bool = False) -> str:
        self.values, self.indices, self.carried, self.containers = ["x"], [], [], []
        self.optional = self.chance(0.6) or not last
        defaults = "n = 3, k = 2, flag = true, f = tanh" if last else "n, k, flag, f"
        extra = ", extra [batch, n] = none" if self.optional else ""
        lines = [f"block {name}({defaults})(x [batch, n]{extra}) -> [batch, n] {{"]
        if self.chance(0.5):
            lines.append(f"  require {self.one(*REQUIRED)}" + self.one("", ', "as it must be"'))
        if self.optional:
            lines.append("  e = extra * 2.0 if extra != none else x")
            self.values.append("e")
        lines += self.statements(2, "  ")
        words = " + ".join(dict.fromkeys(self.values))
        lines += [f"  all = {words}", "  y = f(all) * k if flag else all * n", "  return y |> tanh", "}"]
        self.blocks.append(name)
        return "\n".join(lines) + "\n"
