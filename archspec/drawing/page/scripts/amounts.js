// Amounts of work and memory: polynomials of sizes, evaluated exactly, and how numbers are written.

const operations = {
  "//": (a, b) => floorDivided(a, b),
  "%": (a, b) => a - b * floorDivided(a, b),
  min: (a, b) => (a < b ? a : b),
  max: (a, b) => (a > b ? a : b),
  "+": (a) => a,
};

/** The value of a polynomial of the plan as a BigInt; `sizes` are BigInt by the name of the dimension. */
function valueOf(polynomial, sizes) {
  if (!Array.isArray(polynomial)) return BigInt(polynomial ?? 0);
  let sum = 0n;
  for (const [coefficient, factors] of polynomial) {
    let product = BigInt(coefficient);
    for (const [factor, exponent] of factors) product *= factorValue(factor, sizes) ** BigInt(exponent);
    sum += product;
  }
  return sum;
}

function factorValue(factor, sizes) {
  if (!Array.isArray(factor)) return sizes[factor];
  const [operation, ...operands] = factor;
  return operands.map((operand) => valueOf(operand, sizes)).reduce(operations[operation]);
}

function floorDivided(a, b) {
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

/** An exact integer with its digits grouped. */
const exact = (number) => BigInt(number).toString().replace(/\B(?=(\d{3})+$)/g, ",");

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];
const COUNTED = ["", "K", "M", "B", "T"];

/** An amount in three digits and a unit: `96.6 GFLOPs`, `438 MB`; without a unit, a count: `109M`. */
function short(number, unit = "") {
  const prefixes = unit ? PREFIXES : COUNTED;
  let value = Number(number);
  let step = 0;
  while (value >= 999.5 && step < prefixes.length - 1) {
    value /= 1000;
    step++;
  }
  const digits = step === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)}${unit && "\u00a0"}${prefixes[step]}${unit}`;
}

/** A part of a whole as a number from 0 to 1; both may be too large to be exact as numbers. */
const ratio = (part, whole) => (Number(whole) ? Number(part) / Number(whole) : 0);

/** A part of a whole as a percentage, with the digits that `count` shows. */
function percent(part, whole) {
  const share = ratio(part, whole);
  if (share === 0) return "0 %";
  return share < 0.0005 ? "< 0.1 %" : `${roundEven(100 * share, 1).toFixed(1)} %`;
}

/** A number with some digits after the point, rounded as in Python: exact halves to even digits. */
function roundEven(value, digits) {
  const halves = value * 2 ** (digits + 1);
  const isHalf = Number.isInteger(halves) && !Number.isInteger(halves / 2);
  return isHalf ? (2 * Math.round((value * 10 ** digits) / 2)) / 10 ** digits : Number(value.toFixed(digits));
}
