"""Verdicts on the lines of a calculation, from their own arithmetic and from the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from archspec.analysis.audit.models import Models
from archspec.analysis.audit.read import AuditLine
from archspec.analysis.explain.explain import Explanation, Match
from archspec.analysis.explain.numbers import PublishedNumber, Reading, rounded
from archspec.analysis.explain.omissions import describe
from archspec.core.diagnostics import ArchError, Diagnostic

MAX_ADJUSTMENTS = 3
VERDICTS = {
    "right": "right",
    "convention": "right under another convention",
    "wrong": "wrong",
    "carried": "wrong (carried forward)",
}


class JudgedLine(NamedTuple):
    """A line of a calculation and its verdict; numbers are exact.

    `value` is the claimed number, `own` the result of the line's own arithmetic with the numbers claimed above, and
    `counted` the model's number; each is None if the line does not have it. `verdict` is "right", "convention" (right
    under another convention), "wrong" or "carried" (wrong because of lines above). `meant` is the value without any
    error, and `off` the difference of a wrong exact value from it. `why` has the reasons.
    """

    line: AuditLine
    value: Fraction
    own: Fraction | None
    counted: Fraction | None
    meant: Fraction
    verdict: str
    off: Fraction | None
    why: tuple[str, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether the line is wrong, by its own error or by one carried forward."""
        return self.verdict in ("wrong", "carried")


def judge(lines: Sequence[AuditLine], models: Models) -> tuple[JudgedLine, ...]:
    """Judge lines in order. Raises ArchError with every unknown model, name or pattern."""
    above: dict[str, JudgedLine] = {}
    found: list[Diagnostic] = []
    for line in lines:
        if line.arithmetic is not None and any(name not in above for name, _ in line.arithmetic.lines()):
            continue  # a line that it uses could not be judged, which has been reported
        try:
            above[line.name] = _Judge(line, models, above).judged()
        except ArchError as error:
            found += [diagnostic for diagnostic in error.diagnostics if diagnostic not in found]
    if found:
        raise ArchError(found)
    return tuple(above.values())


class _Judge:
    """The facts about one line, and its verdict."""

    def __init__(self, line: AuditLine, models: Models, above: Mapping[str, JudgedLine]) -> None:
        self.line = line
        self.models = models
        self.above = above
        self.counted = models.counted(line)
        self.used = list(dict.fromkeys(name for name, _ in line.arithmetic.lines())) if line.arithmetic else []
        self.own = None if line.arithmetic is None else self._evaluated(lambda name: above[name].value)
        self.number = line.claimed[0] if line.claimed or self.own is None else exact(self.own)
        self.value = self.number.value
        self._explanations: dict[PublishedNumber, Explanation] = {}

    def judged(self) -> JudgedLine:
        verdict, meant, why = (None if self.own is None else self._error(self.own)) or self._by_model()
        for other in self.line.claimed[1:]:
            if not other.fitting(self.value):
                verdict = "wrong" if verdict in ("right", "convention") else verdict
                is_ = _at(self.value, other, other.readings[-1])
                why.append(f"{self.number.text} is not {other.text}: it is {is_}")
        is_off = verdict in ("wrong", "carried") and self.number.exact and self.value != meant
        off = self.value - meant if is_off else None
        return JudgedLine(self.line, self.value, self.own, self.counted, meant, verdict, off, tuple(why))

    def _error(self, own: Fraction) -> tuple[str, Fraction, list[str]] | None:
        """Return the verdict, the value without any error, and the reasons if the arithmetic shows an error."""
        chain = self._evaluated(lambda name: self.above[name].meant)
        if not self.number.fitting(own):
            meant = self._meant(chain)
            return "wrong", meant, [*self._compare_own(own), *self._carried(own), *self._settled(meant)]
        if chain != own and not self.number.fitting(chain):
            meant = self._meant(chain)
            return "carried", meant, [*self._carried(own), "its own arithmetic is right", *self._settled(meant)]
        return None

    def _by_model(self) -> tuple[str, Fraction, list[str]]:
        """Return the verdict, the value without any error, and the reasons by the model's number."""
        if self.counted is None:
            return "right", self.value, self._rounding(self.own)
        fits = self.number.fitting(self.counted)
        if fits and not (self.number.is_active and self._is_count):
            return "right", self.value, self._rounding(self.counted)
        ways = self._conventions(self.number)
        if fits and any(not way.rank for way in ways):
            return "right", self.value, self._rounding(self.counted)
        if ways:
            return "convention", self.value, [_either(ways)]
        if fits:
            return "wrong", self.counted, ["this counts the experts that a token does not use"]
        return "wrong", self.counted, [*self._difference(self.counted), *self._guesses()]

    def _meant(self, chain: Fraction) -> Fraction:
        """Return the value without any error: that of the arithmetic, unless it matches nothing in the model."""
        if self.counted is None or chain == self.counted:
            return chain
        return chain if self._conventions(exact(chain)) else self.counted

    def _evaluated(self, value: Callable[[str], Fraction]) -> Fraction:
        """Evaluate the line's arithmetic with the `value` of each line above."""
        assert self.line.arithmetic is not None
        return self.models.evaluate(self.line, self.line.arithmetic, value)

    # Reasons

    def _compare_own(self, own: Fraction) -> list[str]:
        """Return the result of the line's own arithmetic, and how the number differs from it."""
        arithmetic = self.line.arithmetic
        assert arithmetic is not None
        gives = f"`{arithmetic.text}` is {self._shown(own)}"
        return [gives, *self._difference(own), *(self._guesses() if not self.used or self.counted == own else [])]

    def _difference(self, right: Fraction) -> list[str]:
        """Describe how the number differs from the right one."""
        number = self.number
        if number.exact:
            detail = describe(int(right), int(number.value)) if right.denominator == 1 else None
            return [f"{self._signed(number.value - right)}{f', {detail}' if detail else ''}"]
        for factor, what in ((1000, "1,000"), (1000**2, "1,000,000"), (1024, "1,024")):
            for scaled, how in ((right * factor, "large"), (right / factor, "small")):
                if self.number.fitting(scaled):
                    return [f"it is {what} times too {how}"]
        return [f"at its digits that is {_at(right, number, number.readings[-1])}"]

    def _carried(self, own: Fraction) -> list[str]:
        """Return the errors carried forward from each of the wrong lines above."""
        found: list[str] = []
        for name in self.used:
            if self.above[name].is_wrong:
                values = {used: self.above[used].value for used in self.used} | {name: self.above[name].meant}
                without = self._evaluated(values.__getitem__)
                if without != own:
                    found.append(f'{self._signed(own - without)} carried forward from "{name}"')
        return found

    def _settled(self, meant: Fraction) -> list[str]:
        """Compare the value without any error with the model."""
        if self.counted is None:
            return []
        if meant == self.counted:
            fits = self.number.fitting(meant)
            also = f", which is {self.number.text} at {_digits(fits)}" if fits and not self.number.exact else ""
            return [f"the model has {self._shown(meant)}{also}"]
        ways = self._conventions(exact(meant))
        return [f"{self._shown(meant)} would be right {_either(ways)}"] if ways else []

    def _guesses(self) -> list[str]:
        """Return guesses that would give the number as claimed; all are equally likely."""
        if self.counted is None or not self.number.exact or not self._may_be_count(self.number):
            return []
        found = [match for match in self._explained(self.number).answers[0].matches if match.rank <= 2]
        if describe(int(self.counted), int(self.value)):  # already reported as an arithmetic error
            found = [match for match in found if match.kind != "arithmetic error"]
        guesses = list(dict.fromkeys(map(_way, found)))
        return [f"{'a guess' if len(guesses) == 1 else 'guesses'}: {' | or '.join(guesses)}"] if guesses else []

    def _rounding(self, right: Fraction | None) -> list[str]:
        """Return the digits at which a rounded number is right, and the right number at the others."""
        if self.number.exact or right is None:
            return []
        fits = self.number.fitting(right)
        why = [f"{self._shown(right)}, right at {_digits(fits)}"]
        for reading in self.number.readings:
            if reading not in fits:
                why.append(f"at {_digits([reading])} it is {_at(right, self.number, reading)}{self._others(reading)}")
        return why

    def _others(self, reading: Reading) -> str:
        """Return the members of the model's family that match an interpretation of the number."""
        if not self.models.is_whole(self.line) or not self._is_count:
            return ""
        answer = next(a for a in self._explained(self.number).answers if a.reading == reading)
        if answer.matches and answer.matches[0].rank == 0:
            return f"; {self.number.text} is {_either(answer.matches, counts=True)}"
        return "" if answer.matches else f", and no convention gives {self.number.text}"

    # Numbers

    @property
    def _is_count(self) -> bool:
        return self.counted is not None and not self.line.of

    def _may_be_count(self, number: PublishedNumber) -> bool:
        return self._is_count and (not number.exact or number.value.denominator == 1)

    def _conventions(self, number: PublishedNumber) -> tuple[Match, ...]:
        """Return the simplest conventions that give a number, in its coarsest interpretation that has any."""
        for answer in self._explained(number).answers if self._may_be_count(number) else ():
            found = tuple([m for m in answer.matches if m.kind == "convention" and m.rank <= MAX_ADJUSTMENTS])
            if found:
                return found
        return ()

    def _explained(self, number: PublishedNumber) -> Explanation:
        if number not in self._explanations:
            self._explanations[number] = self.models.explainer(self.line).explain(number)
        return self._explanations[number]

    def _shown(self, value: Fraction) -> str:
        return shown(value, self.number)

    def _signed(self, difference: Fraction) -> str:
        return f"{self._shown(abs(difference))} too {'much' if difference > 0 else 'little'}"


def exact(value: Fraction) -> PublishedNumber:
    """Return a value as an exact number."""
    return PublishedNumber(
        f"{int(value):,}" if value.denominator == 1 else str(float(value)),
        value,
        (Reading(None, value, value),),
        Fraction(1),
    )


def shown(value: Fraction, number: PublishedNumber) -> str:
    """Format a value like a published number: in percent if it is a percentage, else in full or with five digits."""
    if number.unit == Fraction(1, 100):
        return f"{float(100 * value):.2f} %"
    if value.denominator == 1:
        return f"{int(value):,}"
    return f"{float(value):,.5g}" if abs(value) < 1000 else f"{float(value):,.2f}"


def _at(value: Fraction, number: PublishedNumber, reading: Reading) -> str:
    return rounded(value, number, reading.digits) if reading.digits is not None else shown(value, number)


def _digits(readings: Sequence[Reading]) -> str:
    counts = " and ".join(str(r.digits) for r in readings)
    return f"{counts} significant digit{'' if counts == '1' else 's'}"


def _either(matches: Sequence[Match], counts: bool = False) -> str:
    """Join the alternative conventions that matches describe."""
    texts = [f"{match.params:,} {_way(match)}" if counts else _way(match) for match in matches]
    return " | or ".join(dict.fromkeys(texts))


def _way(match: Match) -> str:
    return ", ".join(step.text for step in match.steps[1:]) or "as the plain count"
