"""Writes village.txt, the text on which the tutorial trains: stories from a small grammar, the same in every run."""

from pathlib import Path
from random import Random

STORIES = 800

PEOPLE = {"Anna": "she", "Ben": "he", "Clara": "she", "David": "he", "Emma": "she", "Felix": "he", "Greta": "she"}
PEOPLE |= {"Hugo": "he", "Ida": "she", "Jonas": "he", "Lena": "she", "Max": "he"}
COLORS = ["red", "blue", "green", "yellow", "white", "black", "brown", "grey"]
THINGS = ["boat", "book", "box", "coat", "cup", "drum", "hat", "kite", "lamp", "scarf", "shell", "spoon"]
PLACES = ["barn", "bridge", "garden", "harbour", "kitchen", "market", "mill", "river", "school", "tower"]
STORY = [
    "{A} has a {color} {thing}. {Her} {thing} is {color}, and {she} keeps it in the {place}.",
    "{A} lost a {color} {thing} at the {place}. {B} went to the {place} and found the {color} {thing}.",
    "{A} met {B} at the {place}. {She} gave {B} a {thing}. It is {color}, and now {B} has a {color} {thing}.",
    "{A} and {B} live near the {place}. {A} has a {thing}, but {B} has none. The {thing} of {A} is {color}.",
]


def story(random: Random) -> str:
    """One line of the text."""

    def one(values: list[str]) -> str:
        return values[int(random.random() * len(values))]

    first = one([*PEOPLE])
    second = one([name for name in PEOPLE if name != first])
    she = PEOPLE[first]
    her = {"she": "Her", "he": "His"}[she]
    words = {"A": first, "B": second, "she": she, "She": she.capitalize(), "Her": her}
    return one(STORY).format(**words, color=one(COLORS), thing=one(THINGS), place=one(PLACES))


def text() -> str:
    """The whole text."""
    random = Random(2018)
    return "".join(story(random) + "\n" for _ in range(STORIES))


if __name__ == "__main__":
    Path(__file__).with_suffix(".txt").write_text(text())
