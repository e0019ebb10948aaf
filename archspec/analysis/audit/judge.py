"""Verdicts on the lines of a calculation, by their own arithmetic and by the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from archspec.analysis.audit.models import Models
from archspec.analysis.audit.read import AuditLine
from archspec.analysis.explain.explain import Explanation, Match
from archspec.analysis.explain.numbers import PublishedNumber, Reading, as_exact_number, format_rounded, format_value
from archspec.analysis.explain.omissions import describe_digit_difference
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
    `counted` the model's number; `own` and `counted` are None for lines without them. `verdict` is "right",
    "convention" (right under a different convention), "wrong" or "carried" (wrong because of lines above). `meant` is
    the value without errors, and `off` the difference between a wrong exact value and `meant`. `why` has the reasons.
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
        """Whether the line is wrong, by its own error or an error carried forward."""
        return self.verdict in ("wrong", "carried")


def judge(lines: Sequence[AuditLine], models: Models) -> tuple[JudgedLine, ...]:
    """Judge lines in order. Raises ArchError with every unknown model, name or pattern."""
    judged: dict[str, JudgedLine] = {}
    diagnostics: list[Diagnostic] = []
    for line in lines:
        if line.arithmetic is not None and any(name not in judged for name, _ in line.arithmetic.iter_lines()):
            continue  # the error of a line that it uses is already reported
        try:
            judged[line.name] = _Judge(line, models, judged).judge()
        except ArchError as error:
            diagnostics += [diagnostic for diagnostic in error.diagnostics if diagnostic not in diagnostics]
    if diagnostics:
        raise ArchError(diagnostics)
    return tuple(judged.values())


class _Judge:
    """The facts about one line, and its verdict."""

    def __init__(self, line: AuditLine, models: Models, judged: Mapping[str, JudgedLine]) -> None:
        self.line = line
        self.models = models
        self.judged = judged
        self.counted = models.count_selected(line)
        self.used = list(dict.fromkeys(name for name, _ in line.arithmetic.iter_lines())) if line.arithmetic else []
        self.own = None if line.arithmetic is None else self._evaluate(lambda name: judged[name].value)
        self.number = line.claimed[0] if line.claimed or self.own is None else as_exact_number(self.own)
        self.value = self.number.value
        self._explanations: dict[PublishedNumber, Explanation] = {}

    def judge(self) -> JudgedLine:
        verdict, meant, reasons = (
            None if self.own is None else self._judge_arithmetic(self.own)
        ) or self._judge_by_model()
        for notation in self.line.claimed[1:]:
            if not notation.matching_readings(self.value):
                verdict = "wrong" if verdict in ("right", "convention") else verdict
                actual = _format_at_reading(self.value, notation, notation.readings[-1])
                reasons.append(f"{self.number.text} is not {notation.text}: it is {actual}")
        reasons += self.models.describe_shared_tensors(self.line)
        is_off = verdict in ("wrong", "carried") and self.number.exact and self.value != meant
        off = self.value - meant if is_off else None
        return JudgedLine(self.line, self.value, self.own, self.counted, meant, verdict, off, tuple(reasons))

    def _judge_arithmetic(self, own: Fraction) -> tuple[str, Fraction, list[str]] | None:
        """Return the verdict, the value without errors, and the reasons; None if the arithmetic has no error."""
        chain = self._evaluate(lambda name: self.judged[name].meant)
        if not self.number.matching_readings(own):
            meant = self._intended_value(chain)
            return (
                "wrong",
                meant,
                [
                    *self._describe_own_result(own),
                    *self._describe_carried_errors(own),
                    *self._compare_with_model(meant),
                ],
            )
        if chain != own and not self.number.matching_readings(chain):
            meant = self._intended_value(chain)
            return (
                "carried",
                meant,
                [*self._describe_carried_errors(own), "its own arithmetic is right", *self._compare_with_model(meant)],
            )
        return None

    def _judge_by_model(self) -> tuple[str, Fraction, list[str]]:
        """Return the verdict, the value without errors, and the reasons according to the model's number."""
        if self.counted is None:
            return "right", self.value, self._describe_rounding(self.own)
        fits = self.number.matching_readings(self.counted)
        if fits and not (self.number.is_active and self._is_count):
            return "right", self.value, self._describe_rounding(self.counted)
        conventions = self._find_conventions(self.number)
        if fits and any(not way.rank for way in conventions):
            return "right", self.value, self._describe_rounding(self.counted)
        if conventions:
            return "convention", self.value, [_join_conventions(conventions)]
        if fits:
            return "wrong", self.counted, ["this counts the experts that a token does not use"]
        return "wrong", self.counted, [*self._describe_difference(self.counted), *self._find_guesses()]

    def _intended_value(self, chain: Fraction) -> Fraction:
        """Return the value without errors: `chain`, unless no convention of the model explains it."""
        if self.counted is None or chain == self.counted:
            return chain
        return chain if self._find_conventions(as_exact_number(chain)) else self.counted

    def _evaluate(self, value: Callable[[str], Fraction]) -> Fraction:
        """Evaluate the line's arithmetic with the `value` of each line above."""
        assert self.line.arithmetic is not None
        return self.models.evaluate(self.line, self.line.arithmetic, value)

    # Reasons

    def _describe_own_result(self, own: Fraction) -> list[str]:
        """Describe the result of the line's own arithmetic, and how the number differs from it."""
        arithmetic = self.line.arithmetic
        assert arithmetic is not None
        result = f"`{arithmetic.text}` is {self._format(own)}"
        return [
            result,
            *self._describe_difference(own),
            *(self._find_guesses() if not self.used or self.counted == own else []),
        ]

    def _describe_difference(self, right: Fraction) -> list[str]:
        """Describe how the number differs from the right number."""
        number = self.number
        if number.exact:
            detail = describe_digit_difference(int(right), int(number.value)) if right.denominator == 1 else None
            return [f"{self._format_signed(number.value - right)}{f', {detail}' if detail else ''}"]
        for factor, factor_text in ((1000, "1,000"), (1000**2, "1,000,000"), (1024, "1,024")):
            for scaled, size in ((right * factor, "large"), (right / factor, "small")):
                if self.number.matching_readings(scaled):
                    return [f"it is {factor_text} times too {size}"]
        return [f"at its digits that is {_format_at_reading(right, number, number.readings[-1])}"]

    def _describe_carried_errors(self, own: Fraction) -> list[str]:
        """Describe the errors carried forward from wrong lines above."""
        reasons: list[str] = []
        for name in self.used:
            if self.judged[name].is_wrong:
                values = {used: self.judged[used].value for used in self.used} | {name: self.judged[name].meant}
                corrected = self._evaluate(values.__getitem__)
                if corrected != own:
                    reasons.append(f'{self._format_signed(own - corrected)} carried forward from "{name}"')
        return reasons

    def _compare_with_model(self, meant: Fraction) -> list[str]:
        """Compare the value without errors with the model."""
        if self.counted is None:
            return []
        if meant == self.counted:
            fits = self.number.matching_readings(meant)
            rounding = (
                f", which is {self.number.text} at {_format_digits(fits)}" if fits and not self.number.exact else ""
            )
            return [f"the model has {self._format(meant)}{rounding}"]
        conventions = self._find_conventions(as_exact_number(meant))
        return [f"{self._format(meant)} would be right {_join_conventions(conventions)}"] if conventions else []

    def _find_guesses(self) -> list[str]:
        """Return guesses that would explain the claimed number; all are equally likely."""
        if self.counted is None or not self.number.exact or not self._can_be_count(self.number):
            return []
        matches = [match for match in self._explain(self.number).answers[0].matches if match.rank <= 2]
        if describe_digit_difference(int(self.counted), int(self.value)):  # already reported as an arithmetic error
            matches = [match for match in matches if match.kind != "arithmetic error"]
        guesses = list(dict.fromkeys(map(_describe_convention, matches)))
        return [f"{'a guess' if len(guesses) == 1 else 'guesses'}: {' | or '.join(guesses)}"] if guesses else []

    def _describe_rounding(self, right: Fraction | None) -> list[str]:
        """Describe the digits at which a rounded number is right, and the right number at the other digits."""
        if self.number.exact or right is None:
            return []
        fits = self.number.matching_readings(right)
        reasons = [f"{self._format(right)}, right at {_format_digits(fits)}"]
        for reading in self.number.readings:
            if reading not in fits:
                text = f"at {_format_digits([reading])} it is {_format_at_reading(right, self.number, reading)}"
                reasons.append(text + self._describe_family_matches(reading))
        return reasons

    def _describe_family_matches(self, reading: Reading) -> str:
        """Describe the members of the model's family that match an interpretation of the number."""
        if not self.models.selects_all(self.line) or not self._is_count:
            return ""
        answer = next(a for a in self._explain(self.number).answers if a.reading == reading)
        if answer.matches and answer.matches[0].rank == 0:
            return f"; {self.number.text} is {_join_conventions(answer.matches, counts=True)}"
        return "" if answer.matches else f", and no convention gives {self.number.text}"

    # Numbers

    @property
    def _is_count(self) -> bool:
        return self.counted is not None and not self.line.of

    def _can_be_count(self, number: PublishedNumber) -> bool:
        return self._is_count and (not number.exact or number.value.denominator == 1)

    def _find_conventions(self, number: PublishedNumber) -> tuple[Match, ...]:
        """Return the simplest conventions that explain a number, in its coarsest interpretation with a match."""
        for answer in self._explain(number).answers if self._can_be_count(number) else ():
            matches = tuple([m for m in answer.matches if m.kind == "convention" and m.rank <= MAX_ADJUSTMENTS])
            if matches:
                return matches
        return ()

    def _explain(self, number: PublishedNumber) -> Explanation:
        if number not in self._explanations:
            self._explanations[number] = self.models.explainer(self.line).explain(number)
        return self._explanations[number]

    def _format(self, value: Fraction) -> str:
        return format_value(value, self.number)

    def _format_signed(self, difference: Fraction) -> str:
        return f"{self._format(abs(difference))} too {'much' if difference > 0 else 'little'}"


def _format_at_reading(value: Fraction, number: PublishedNumber, reading: Reading) -> str:
    return format_rounded(value, number, reading.digits) if reading.digits is not None else format_value(value, number)


def _format_digits(readings: Sequence[Reading]) -> str:
    counts = " and ".join(str(r.digits) for r in readings)
    return f"{counts} significant digit{'' if counts == '1' else 's'}"


def _join_conventions(matches: Sequence[Match], counts: bool = False) -> str:
    """Describe matches as alternatives."""
    texts = [
        f"{match.params:,} {_describe_convention(match)}" if counts else _describe_convention(match)
        for match in matches
    ]
    return " | or ".join(dict.fromkeys(texts))


def _describe_convention(match: Match) -> str:
    return ", ".join(step.text for step in match.steps[1:]) or "as the plain count"
