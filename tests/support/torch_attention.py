"""Random functions that are attention, or nearly: scores scaled, biased and masked in any order, under conditions."""

from random import Random

STEPS = {
    "+ bias": "bias",
    "+ table": "table",
    "+ alibi(seq)": "",
    "+ distance(seq)": "",
    "* 0.3": "",
    "* size ** -0.5": "",
    "/ 2": "",
    "where(mask, _, -inf)": "mask",
    "where(causal(seq), _, -inf)": "",
    "where(_ > -9, _, -inf)": "",
    "where(causal(seq) or mask, _, -inf)": "mask",
    "where(mask, _, -100.0)": "mask",
    "max(_, -3)": "",
    "max(_, lowest)": "",
}
"""What may happen to scores, and the input that it takes."""

SHAPES = {"bias": "[2, seq, seq] = none", "mask": "bool [seq, seq] = none", "table": "[2, 1, seq]"}
TEXT = """
dim batch, seq, size

fn distance(length) -> int [length, length] {{
  return abs(arange(length) - reshape([length, 1])(arange(length)))
}}

fn alibi(length) -> [length, length] {{
  return distance(length) * -0.25
}}

fn causal(length) -> bool [length, length] {{
  return reshape([length, 1])(arange(length)) >= arange(length)
}}

fn attend(flag = true)
         (q [batch, 2, seq, size], k [batch, 2, seq, size], v [batch, 2, seq, size]{inputs}) -> [batch, 2, seq, size] {{
{body}
}}

block Net()(q [batch, 2, seq, 4], bias [2, seq, seq], some bool [seq, seq], table [2, 1, seq]) -> [batch, 2, seq, 4] {{
  mask = some or causal(seq)
USES
}}
model "net" = Net()
"""


def attention(seed: int) -> str:
    """A spec whose function is applied several times, with and without its options."""
    random = Random(seed)
    steps: list[str] = []
    for step in random.choices(list(STEPS), k=random.randint(0, 4)):
        conditions = [f"{STEPS[step]} != none"] if STEPS[step] in ("bias", "mask") else []
        conditions += random.choice([[], [], ["flag"], ["not flag"]])
        steps.append(f"{step} if {' and '.join(conditions)}" if conditions else step)
    taken = [name for name in SHAPES if any(STEPS[step.partition(" if ")[0]] == name for step in steps)]
    key = random.choice(["transpose(k)", "transpose(-1, -2)(k)", "transpose(2, 3)(k)", "(k |> transpose)"])
    chain = [f"matmul(q, {key})", *steps, random.choice(["softmax", "softmax(axis = -1)"]), "matmul(_, v)"]
    cut = random.randint(1, len(chain) - 1)
    body = "  return " + "\n    |> ".join(chain)
    if random.random() < 0.4:
        body = "  s = " + " |> ".join(chain[:cut]) + "\n  return " + "\n    |> ".join(["s", *chain[cut:]])
    if not any("flag" in step for step in steps):
        body += " |> * 2 if flag"
    uses: list[str] = []
    for i in range(random.randint(1, 4)):
        options = [name for name in taken if name == "table" or random.random() < 0.6]
        given = "".join(f", {name} = {name}" for name in options)
        before = f"h{i - 1}" if i else "q"
        flag = random.choice(["true", "false"])
        uses.append(f"  h{i} = attend({flag})({before}, q * {i + 1}, {before}{given}) + q")
    last = " + ".join([f"h{len(uses) - 1}", "sum(axis = [0, 1, 2])(bias + table + real(mask)) * 0.01"])
    text = TEXT.format(inputs="".join(f", {name} {SHAPES[name]}" for name in taken), body=body)
    return text.replace("USES", "\n".join([*uses, f"  return {last}"]))
