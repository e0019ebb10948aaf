/** The total of the example for other values of its open hyperparameters, by the formula that the build has derived. */

/** Return the total of a text that differs from the example in these values alone. */
export function totalOf(text, { text: example, formula: { total, open, multiples } }) {
  const names = Object.keys(open);
  const escaped = example.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = names.reduce(
    (found, name) => found.replace(`, ${name} = ${open[name]},`, `, ${name} = (?<${name}>[1-9]\\d{0,8}),`),
    escaped,
  );
  const values = new RegExp(`^${pattern}$`).exec(text)?.groups;
  if (!values || Object.entries(multiples).some(([name, divisor]) => values[name] % divisor)) return undefined;
  return evaluate(total, values);
}

/** Return the value of a sum of products of numbers and powers, as in `12*d**2*layers + 13*d`. */
function evaluate(sum, values) {
  const power = (text) => {
    const [base, exponent = "1"] = text.split("^");
    return BigInt(values[base] ?? base) ** BigInt(exponent);
  };
  const product = (term) => term.replaceAll("**", "^").split("*").map(power).reduce((a, b) => a * b);
  return sum.split(" + ").map(product).reduce((a, b) => a + b);
}
