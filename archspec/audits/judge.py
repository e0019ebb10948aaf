"""Judges the lines of a calculation: each on its own arithmetic, and against the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from archspec.audits.arithmetic import evaluate
from archspec.audits.models import Models
from archspec.audits.read import AuditLine
from archspec.explanations.arithmetic_errors import describe
from archspec.explanations.explain import Answer, Explanation, Match
from archspec.explanations.numbers import PublishedNumber, Reading, rounded
from archspec.source import ArchError, Diagnostic

MOST_DEVIATIONS = 3
VERDICTS = {
    "right": "right",
    "convention": "right under another convention",
    "wrong": "wrong",
    "carried": "wrong (carried on)",
}


class JudgedLine(NamedTuple):
    """A line of a calculation and its verdict; numbers are exact.

    `value` is what the line claims, `own` the result of its own arithmetic with what the lines above claim, and
    `counted` what the model has; None if the line does not have it. `verdict` is "right", "convention" (right under
    another convention), "wrong" or "carried" (wrong because of lines above). `meant` is the value without any error,
    and `off` the difference of a wrong exact value from it. `why` are sentences.
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
        return self.verdict in ("wrong", "carried")


def judge(lines: Sequence[AuditLine], models: Models) -> tuple[JudgedLine, ...]:
    """Judges lines in order. Raises ArchError with all that is about nothing: models, names, patterns."""
    above: dict[str, JudgedLine] = {}
    found: list[Diagnostic] = []
    for line in lines:
        if line.arithmetic is not None and any(name not in above for name, _ in line.arithmetic.lines()):
            continue  # a line that it rests upon could not be judged, which has been said
        try:
            above[line.name] = _Judge(line, models, above).judged()
        except ArchError as error:
            found += [diagnostic for diagnostic in error.diagnostics if diagnostic not in found]
    if found:
        raise ArchError(found)
    return tuple(above.values())


class _Judge:
    """What is known of one line."""

    def __init__(self, line: AuditLine, models: Models, above: Mapping[str, JudgedLine]) -> None:
        self.line = line
        self.models = models
        self.above = above
        self.counted = models.counted(line)
        self.used = list(dict.fromkeys(name for name, _ in line.arithmetic.lines())) if line.arithmetic else []
        self.own = self._evaluate(lambda name: above[name].value)
        self.number = line.claimed[0] if line.claimed else exact(self.own if self.own is not None else Fraction(0))
        self.value = self.number.value
        self._explanations: dict[PublishedNumber, Explanation] = {}

    def judged(self) -> JudgedLine:
        chain = self._evaluate(lambda name: self.above[name].meant)
        verdict, meant, why = self._verdict(chain)
        for other in self.line.claimed[1:]:
            if not any(reading.fits(self.value) for reading in other.readings):
                verdict = "wrong" if verdict in ("right", "convention") else verdict
                why.append(
                    f"{self.number.text} is not {other.text}: it is {_at(self.value, other, other.readings[-1])}"
                )
        is_off = verdict in ("wrong", "carried") and self.number.exact and self.value != meant
        off = self.value - meant if is_off else None
        return JudgedLine(self.line, self.value, self.own, self.counted, meant, verdict, off, tuple(why))

    def _verdict(self, chain: Fraction | None) -> tuple[str, Fraction, list[str]]:
        """The verdict, what the value would be without any error, and why."""
        meant = self._meant(chain)
        if self.own is not None and not self._fits(self.own):
            return "wrong", meant, [*self._slipped(self.own), *self._carried(self.own), *self._settled(meant)]
        if chain is not None and chain != self.own and not self._fits(chain):
            why = [*self._carried(self.own or chain), "its own arithmetic is right", *self._settled(meant)]
            return "carried", meant, why
        if self.counted is None:
            return "right", self.value, self._rounding(self.own)
        if self._fits(self.counted):
            return "right", self.value, self._rounding(self.counted)
        ways = self._conventions(self.number)
        if ways:
            return "convention", self.value, [_either(ways)]
        return "wrong", self.counted, [*self._difference(self.counted), *self._guesses()]

    def _meant(self, chain: Fraction | None) -> Fraction:
        """What the line comes to without any error: by its arithmetic, unless that counts nothing there is."""
        if chain is None or self.counted is None or chain == self.counted:
            return chain if chain is not None else self.counted if self.counted is not None else self.value
        return chain if self._conventions(exact(chain)) else self.counted

    def _fits(self, value: Fraction) -> bool:
        return any(reading.fits(value) for reading in self.number.readings)

    # Sentences

    def _slipped(self, own: Fraction) -> list[str]:
        """What the line's own arithmetic gives, and how the number differs from it."""
        arithmetic = self.line.arithmetic
        assert arithmetic is not None
        gives = f"`{arithmetic.text}` is {self._shown(own)}"
        return [gives, *self._difference(own), *(self._guesses() if not self.used or self.counted == own else [])]

    def _difference(self, right: Fraction) -> list[str]:
        """How the number differs from the right one, where that says more than their difference."""
        number = self.number
        if number.exact:
            slipped = describe(int(right), int(number.value)) if right.denominator == 1 else None
            return [f"{self._signed(number.value - right)}{f', {slipped}' if slipped else ''}"]
        for factor, what in ((1000, "1,000"), (1000**2, "1,000,000"), (1024, "1,024")):
            for scaled, how in ((right * factor, "large"), (right / factor, "small")):
                if self._fits(scaled):
                    return [f"it is {what} times too {how}"]
        return [f"at its digits that is {_at(right, number, number.readings[-1])}"]

    def _carried(self, own: Fraction) -> list[str]:
        """What comes from the lines above that are wrong, one by one."""
        found: list[str] = []
        for name in self.used:
            if self.above[name].is_wrong:
                without = self._evaluate(lambda n, name=name: self.above[n].meant if n == name else self.above[n].value)
                if without is not None and without != own:
                    found.append(f'{self._signed(own - without)} carried on from "{name}"')
        return found

    def _settled(self, meant: Fraction) -> list[str]:
        """What the model says of the value without any error."""
        if self.counted is None:
            return []
        if meant == self.counted:
            fits = [reading for reading in self.number.readings if not self.number.exact and reading.fits(meant)]
            also = f", which is {self.number.text} at {_digits(fits)}" if fits else ""
            return [f"the model has {self._shown(meant)}{also}"]
        ways = self._conventions(exact(meant))
        return [f"{self._shown(meant)} would be right {_either(ways)}"] if ways else []

    def _guesses(self) -> list[str]:
        """What would give the number as it is: guesses, each as good as the other."""
        if self.counted is None or not self._is_count or not self.number.exact:
            return []
        found = [match for match in self._explained(self.number).answers[0].matches if match.rank <= 2]
        if describe(int(self.counted), int(self.value)):  # which is said already, and is the same slip
            found = [match for match in found if match.kind != "slip"]
        guesses = list(dict.fromkeys(map(_way, found)))
        return [f"{'a guess' if len(guesses) == 1 else 'guesses'}: {' | or '.join(guesses)}"] if guesses else []

    def _rounding(self, right: Fraction | None) -> list[str]:
        """At which digits a rounded number is right, and what is so at the others."""
        if self.number.exact or right is None:
            return []
        fits = [r for r in self.number.readings if r.fits(right)]
        why = [f"{self._shown(right)}, right at {_digits(fits)}"]
        for reading in self.number.readings:
            if reading not in fits:
                why.append(f"at {_digits([reading])} it is {_at(right, self.number, reading)}{self._others(reading)}")
        return why

    def _others(self, reading: Reading) -> str:
        """What else of the model's family a reading fits."""
        if not self.models.is_whole(self.line) or not self._is_count:
            return ""
        answer = self._answer(reading)
        if answer.matches and answer.matches[0].rank == 0:
            return f"; {self.number.text} is {_either(answer.matches, counts=True)}"
        return "" if answer.matches else f", and no way of counting gives {self.number.text}"

    def _answer(self, reading: Reading) -> Answer:
        return next(a for a in self._explained(self.number).answers if a.reading == reading)

    # Numbers

    @property
    def _is_count(self) -> bool:
        return self.counted is not None and not self.line.of

    def _conventions(self, number: PublishedNumber) -> tuple[Match, ...]:
        """The conventions under which a number is right: all of the simplest, of the coarsest reading that has any."""
        for answer in self._explained(number).answers if self._is_count and number.value.denominator == 1 else ():
            found = tuple([m for m in answer.matches if m.kind == "convention" and m.rank <= MOST_DEVIATIONS])
            if found:
                return found
        return ()

    def _explained(self, number: PublishedNumber) -> Explanation:
        if number not in self._explanations:
            self._explanations[number] = self.models.explainer(self.line).explain(number)
        return self._explanations[number]

    def _evaluate(self, value: Callable[[str], Fraction]) -> Fraction | None:
        arithmetic = self.line.arithmetic
        if arithmetic is None:
            return None
        return self.models.checked(self.line, lambda names: evaluate(arithmetic.expr, names, value))

    def _shown(self, value: Fraction) -> str:
        return shown(value, self.number)

    def _signed(self, difference: Fraction) -> str:
        return f"{self._shown(abs(difference))} too {'much' if difference > 0 else 'little'}"


def exact(value: Fraction) -> PublishedNumber:
    """A value as a number without any rounding."""
    return PublishedNumber(
        f"{int(value):,}" if value.denominator == 1 else str(float(value)),
        value,
        (Reading(None, value, value),),
        Fraction(1),
    )


def shown(value: Fraction, number: PublishedNumber) -> str:
    """A value as people read it, beside a number: in percent if that is; in full, or at five digits."""
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
    """The ways of counting, with what they do to the model."""
    texts = [f"{match.params:,} {_way(match)}" if counts else _way(match) for match in matches]
    return " | or ".join(dict.fromkeys(texts))


def _way(match: Match) -> str:
    return ", ".join(step.text for step in match.steps[1:]) or "counted plainly"
