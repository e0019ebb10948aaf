"""Messages about definitions that are evaluated, each with its place, in a golden file."""

import re
from collections.abc import Callable

import pytest
from small import load

import archspec

MISTAKES: dict[str, str] = {
    "dots outside of shapes": """
block Net(n = 4)(x [..., n]) -> [..., n] {
  w: param [n]
  return x * .w * f(...)
}
fn f(a) { return a }
""",
    "an address twice": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w + .u + .u
}
""",
    "several unknown arguments": """
layer Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return linear(x, .w, size = 3, bias = none, width = 2, bias = none)
}
""",
    "another input of a module": """
layer L(n)(x [n]) -> [n] {
 w: param [n]
 return x * .w
}
block Net(n = 4)(x [n]) -> [n] {
  y = a: L(n)(x)
  return .a(y, y)
}
""",
    "a hyperparameter of a function": """
fn f(n)(x [...]) -> [...] { return x * n }
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return f(m = 3)(x * .w)
}
""",
    "a condition of a step": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x |> * .w |> * 2.0 if n |> + x
}
""",
    "tensors that are unused inside": """
layer L(n)(x [n]) -> [n] {
 w: unused param [n]
 v: param [n]
 u: param [n]
 return x * .u
}
block B(n)(x [n]) -> [n] {
 return x |> a: L(n) |> b: L(n)
}
block Net(n = 4)(x [n]) -> [n] {
  return x |> c: B(n)
}
""",
    "a condition of numbers": """
fn f(n) { if n { return 2 }
 return 3 }
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w * f(n)
}
""",
    "a dimension in a function of numbers": """
dim batch
fn f(n) { return n * batch }
block Net(n = 4)(x [batch, n]) -> [batch, n] {
  w: param [n]
  return x * .w * f(n)
}
""",
    "an address in a function": """
fn f(n) { return .w(n) }
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w * f(n)
}
""",
    "a hyperparameter of a function of numbers": """
fn f(n) { return n }
block Net(n = 4, m = f(k = 3))(x [n]) -> [n] {
  w: param [n]
  return x * .w * m
}
""",
    "a hyperparameter twice": """
layer L(n, m)(x [n]) -> [n] {
 w: param [n]
 return x * .w * m
}
block Net(n = 4)(x [n]) -> [n] {
  return x |> a: L(n, 3, n = 4)
}
""",
    "a bound hyperparameter": """
layer L(n, m)(x [n]) -> [n] {
 w: param [n]
 return x * .w * m
}
block Net(n = 4, P = L(m = 3))(x [n]) -> [n] {
  Q = P(m = 4)
  return x |> a: Q(n)
}
""",
    "a hyperparameter that is bound": """
layer L(n, m)(x [n]) -> [n] {
 w: param [n]
 return x * .w * m
}
block Net(n = 4, P = L(k = 3))(x [n]) -> [n] {
  return x |> a: P(n)
}
""",
    "a name in a condition": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w if n > 3 and missing > 2 else x
}
""",
    "a large size": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w + sum(axis = 1)(rearrange("(a b) -> a b", a = 9223372036854775807, b = 2)(x))
}
""",
    "elements of another type": """
block Net(n = 4)(x int [n]) -> [n] {
  w: param [n]
  return x
}
""",
    "no factor": """
dim seq
fn f(k)(x [k * seq]) -> [seq] { return sum(axis = 1)(reshape([seq, k])(x)) }
block Net(n = 4)(x [n]) -> [2] {
  w: param [n]
  return f(0)(x * .w)
}
""",
    "a factor of an unknown name": """
dim seq
fn f(k)(x [missing * seq]) -> [seq] { return x }
block Net(n = 4)(x [n]) -> [2] {
  w: param [n]
  return f(0)(x * .w)
}
""",
    "a shape in numbers": """
fn f(k)(x [k + 1, 3]) -> [3] { return sum(axis = 0)(x) }
block Net(n = 4)(x [n]) -> [3] {
  w: param [n]
  return f(2)(x * .w)
}
""",
    "an output that is never returned": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  if n > 9 { return "text" }
  return x * .w
}
""",
    "an input as a hyperparameter": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  p, q = split([2, 2])(x)
  return x * .w * f(a = .w)
}
fn f(a) { return a }
""",
    "a layer as a value": """
layer L(n)(x [n]) -> [n] {
 w: param [n]
 return x * .w
}
block Net(n = 4)(x [n]) -> [n] {
  y = a: L(n)(x)
  return y * .a
}
""",
    "a name in a loop over a dimension": """
dim seq
block Net(n = 4)(x [seq, n]) -> [seq, n] {
  w: param [n]
  for t in 0..seq { y = collect(axis = 0)(missing(t)) }
  return y * .w
}
""",
    "a name in what is collected": """
block Net(n = 4)(x [n]) -> [2, n] {
  w: param [n]
  for i in 0..2 { y = collect(axis = 0)(x * .w * missing) }
  return y
}
""",
    "an index that is unknown": """
layer L(n)(x [n]) -> [n] {
 w: param [n]
 return x * .w
}
block Net(n = 4)(x [n]) -> [n] {
  a[0]: L(n)
  return x |> .a[missing]
}
""",
    "a boolean tensor and a number": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  y = x * .w > 0.0
  return y |> + 1
}
""",
    "a boolean tensor and a real one": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  y = x * .w > 0.0
  return x |> + y
}
""",
    "a list as an input": """
layer L(n)(x [n]) -> [n] {
 w: param [n]
 return x * .w
}
block Net(n = 4)(x [n]) -> [n] {
  return a: L(n)([1, 2])
}
""",
    "a loop that collects and ends before it begins": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  for i in 3..2 { y = collect(axis = 0)(x * .w) }
  return x * .w
}
""",
    "a tensor with too many axes": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  z = reshape([
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, n
  ])(x * .w)
  for i in 0..2 { y = collect(axis = 0)(z) }
  return y
}
""",
    "an axis in some iterations": """
block Net(n = 4, flags = [true, false, true, true])(x [n]) -> [3, n] {
  for i in 0..4 { w[i]: param [n] }
  z = x
  for i in 0..4 {
    z = z * .w[i]
    if flags[i] { y = collect(axis = 9)(z) }
  }
  return y
}
""",
    "a loop of numbers that ends before it begins": """
fn f(n) {
  s = 0
  for i in 0..0 - n { s = s + 1 }
  return s
}
block Net(n = 4, m = f(n))(x [n]) -> [n] {
  w: param [n]
  return x * .w * m
}
""",
    "a loop of numbers with an unknown end": """
fn f(n) {
  s = 0
  for i in 0..n + missing { s = s + 1 }
  return s
}
block Net(n = 4, m = f(n))(x [n]) -> [n] {
  w: param [n]
  return x * .w * m
}
""",
    "a loop over an unknown number": """
block Net(n = 4)(x [n]) -> [n] {
  for i in 0..missing { w[i]: param [n] }
  return x * .w[0]
}
""",
    "a loop over booleans": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  y = x
  for i in false..true { y = y * .w }
  return y
}
""",
    "a hyperparameter bound twice in a value": """
layer L(n, m)(x [n]) -> [n] {
 w: param [n]
 return x * .w * m
}
block Net(n = 4, P = L)(x [n]) -> [n] {
  Q = P(4, n = 3)
  return x |> a: Q(n)
}
""",
    "an unknown hyperparameter bound in a value": """
layer L(n, m)(x [n]) -> [n] {
 w: param [n]
 return x * .w * m
}
block Net(n = 4, P = L)(x [n]) -> [n] {
  Q = P(k = 3)
  return x |> a: Q(n)
}
""",
    "an input twice": """
block Net(n = 4)(x [n], x [n]) -> [n] {
  w: param [n]
  return x * .w
}
""",
    "an unknown size of an arrangement": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w |> rearrange("(a b) -> a b", a = missing)
}
""",
    "sizes of an arrangement that are too large": """
dim seq
block Net(n = 4)(x [seq, n]) -> [n] {
  w: param [n]
  return x * .w |> rearrange("(a b c) n -> a b c n", a = 999999999999999999, b = 100 * seq)
}
""",
    "a layer as a hyperparameter": """
layer L(n)(x [n]) -> [n] {
 w: param [n]
 return x * .w
}
block Net(n = 4)(x [n]) -> [n] {
  a: L(n)
  b: L(n)
  return x |> .a |> f(.b)
}
fn f(k)(x [...]) -> [...] { return x * k }
""",
    "tensors of a loop that is not there": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  if n > 9 { for i in 0..3 { v[i]: param [n] } }
  return x * .w
}
""",
    "modules with tensors of different shapes": """
layer L(n, m)(x [n]) -> [n] {
 w: param [m, n]
 return x * sum(axis = 0)(.w)
}
block Net(n = 4)(x [n]) -> [n] {
  y = x |> a: L(n, 4) |> b: L(n, 6)
  tie b = a
  return y
}
""",
    "a function without inputs in a chain": """
fn f() { return 3 }
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w |> f()
}
""",
    "a hyperparameter with the name of a function": """
fn n(a) { return a }
block Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w
}
""",
    "a model of a function": """
fn f(x [4]) -> [4] { return x }
model "m" = f()
""",
    "inputs passed on to a value": """
layer L(n)(x [n]) -> [n] {
 w: param [n]
 return x * .w
}
block Net(n = 4, P = L)(x [n]) -> [n] {
  return a: P(n)(..)
}
""",
    "a tensor that all uses leave unused": """
layer L(n)(x [n]) -> [n] {
 w: param [n]
 v: param [n]
 return x * .w
}
block Net(n = 4)(x [n]) -> [n] {
  a: L(n)
  return x |> .a |> .a
}
""",
    "a factor of 0": """
dim seq, m, k
fn f(k)(x [(k - 3) * seq, m]) -> [seq, m] { return slice(0, 0, seq)(x) }
block Net(n = 4)(x [seq, n]) -> [3, n] {
  w: param [n]
  return f(3)(concat(0)(x, x, x) * .w)
}
""",
    "a dimension as a default": """
dim seq
block Net(n = 4, m = seq * 2)(x [seq, n]) -> [seq, n] {
  w: param [n]
  return x * .w * m
}
""",
    "a chain as a default": """
block Net(n = 4, m = 4 |> exp)(x [n]) -> [n] {
  w: param [n]
  return x * .w * m
}
""",
    "a tensor as a default": """
block Net(n = 4, m = arange(n))(x [n]) -> [n] {
  w: param [n]
  return x * .w * m
}
""",
    "a default with an unknown name": """
block Net(n = missing |> * 3)(x [2]) -> [2] {
  w: param [2]
  return x * .w
}
""",
    "a default that depends on an input": """
layer L(n, m = n + 1)(x [2]) -> [2] {
 w: param [m]
 return x * sum(axis = 0)(.w)
}
block Net(n = 4)(x [2]) -> [2] {
  return x |> a: L(x)
}
""",
    "tensors in a branch with an unknown condition": """
block Net(n = 4)(x [n]) -> [n] {
  if missing > 2 { w: param [n] }
  return x * .w
}
""",
    "a tensor with an unknown condition": """
block Net(n = 4)(x [n]) -> [n] {
  w: param [n] if missing > 2
  return x * .w
}
""",
    "tensors of a loop over a real number": """
block Net(n = 4)(x [n]) -> [n] {
  w[i]: param [n] for i in 0..2.5
  return x * .w[0]
}
""",
    "a size that a step of a chain made": """
layer Net(n = 4)(x [3, n]) -> [3, n] {
  w: param [n]
  return x |> concat(0)(_, _) |> * .w |> + x
}
""",
    "a size of an inner axis that a step made": """
layer Net(n = 4)(x [3, n]) -> [2, 3, n] {
  w: param [n]
  return x |> stack(0)(_, _) |> slice(1, 0, 2) |> * .w |> + x
}
""",
    "sizes that two steps made": """
layer Net(n = 4)(x [3, n]) -> [3, n] {
  w: param [n]
  y = slice(0, 0, 2)(x)
  return x |> concat(0)(_, _) |> * .w |> + y
}
""",
    "a size beside one that is broadcast": """
layer Net(n = 4)(x [3, n]) -> [3, n] {
  w: param [n]
  return x * .w |> slice(0, 0, 1) |> slice(1, 0, 2) |> + x
}
""",
    "a size that the operand of a step made": """
layer Net(n = 4)(x [3, n]) -> [3, n] {
  w: param [n]
  return x |> + concat(0)(x, x) |> * .w
}
""",
    "a size of a step with three operands": """
layer Net(n = 4)(x [3, n]) -> [3, n] {
  w: param [n]
  return x > 0.0 |> concat(0)(_, _) |> where(_, x, x) |> * .w
}
""",
    "a size that a loop widens": """
layer Net(n = 4)(x [3, n]) -> [3, n] {
  w: param [n]
  return x |> * .w |> concat(0)(_, x) for i in 0..2 |> exp |> + x
}
""",
    "a size of an axis that moves": """
layer Net(n = 4)(x [3, n]) -> [3, n] {
  w: param [n]
  return x * .w |> slice(0, 0, 2) |> transpose |> exp |> transpose |> + x
}
""",
    "operands and values of other kinds": """
layer L(k)(x [..., 4]) -> [..., 4] {
  w: param [k]
  return x * .w
}
layer Net(n = 4)(x [n]) -> [n] {
  y = L
  z = [L, 2]
  _ = L[0]
  _ = len(L)
  _ = not L
  _ = -L
  _ = L and true
  _ = L in [1]
  _ = L + 1
  _ = x + L
  _ = softmax(L)(x)
  _ = sum(axis = L)(x)
  _ = L == x
  _ = L == 2
  _ = "a" + 1
  _ = "a" + x
  _ = none + x
  _ = none + 1
  _ = [1] + [2]
  _ = [1] == [1, 2]
  _ = x[1]
  _ = x(1)
  _ = 3(x)
  return x
}
""",
    "a list with a dimension": """
dim seq
fn f(k) { return k[0] + k[1] }
layer Net(n = 4)(x [seq, n]) -> [seq, n] {
  w: param [f([n, seq])]
  return x * .w
}
""",
    "positions that depend on an input": """
dim seq
layer Net(n = 4, k = [1, 2])(x [seq, n]) -> [seq, n] {
  w: param [k[seq]]
  v: param [len(seq)]
  u[seq]: param [n]
  return x * .w
}
""",
    "conditions that depend on an input": """
dim seq
layer Net(n = 4, k = [1, 2])(x [seq, n]) -> [seq, n] {
  w: param [n] if seq > 2
  y = x * 2.0 if seq > 2 else x
  tie a = b if seq > 1
  for i in 0..seq { w[i]: param [n] }
  return x * .w
}
""",
    "a loop of numbers over a dimension": """
dim seq
fn f(k) {
  s = 0
  for i in 0..k { s = s + 1 }
  return s
}
layer Net(n = 4)(x [seq, n]) -> [seq, n] {
  w: param [n]
  return x * .w * f(seq)
}
""",
    "expectations of other kinds": """
dim seq
layer Net(n = 4)(x [seq, n]) -> [seq, n] {
  w: param [n]
  return x * .w
}
model "m" = Net() {
  expect params == seq
  expect params
  expect tensors == none
  expect "a" == 3
  expect params in [3]
}
""",
    "operations without their input": """
layer Net(n = 4)(x [n], ids int [n]) -> [n] {
  w: param [n]
  a = ids + lowest
  b = lowest + ids
  c = where(x > 0.0, lowest, x)
  d = where(ids > 0, ids, lowest)
  return x * .w * a * b * c * d
}
""",
    "a layer of which only a tensor is read": """
layer L(n)(x [n]) -> [n] {
  w: param [n]
  v: unused param [n]
  u: param [n]
  return x * .u + .w
}
block Net(n = 4)(x [n]) -> [n] {
  b: L(n)
  return x * .b.u
}
""",
    "addresses inside others": """
layer L(n)(x [n]) -> [n] {
  w: param [n]
  return x * .w
}
block Net(n = 4)(x [n]) -> [n] {
  a.b.c: L(n)
  a: L(n)
  a.b: L(n)
  ab: L(n)
  return x |> .a |> .a.b |> .a.b.c |> .ab
}
""",
    "calls without what they need": """
fn f(x [4], y [4]) -> [4] { return x + y }
fn g(n)(x [4], y [4]) -> [4] { return x + y * n }
layer Net(n = 4)(x [4]) -> [4] {
  w: param [n]
  a = f()
  b = g(2)()
  c = g(2, x)
  d = f(x)
  e = g(x, x, 2)
  h = g(x, x, 2, 3)
  i = g(n = 2)(x)
  j = g(2)(x, x, 3)
  k = g(x, x, 3, n = 2)
  l = g(x, x, a)
  for m in 0..2 { o = g(x, x, m) }
  return x * .w * a * b * c * d * e * h * i * j * k
}
""",
    "arrangements of several inputs": """
layer Net(n = 4)(x [n], y [n]) -> [n] {
  w: param [n]
  a = rearrange("a -> a")(x, y)
  b = rearrange("a -> a")(y = x)
  c = rearrange("a -> a")(..)
  d = rearrange("a -> a")()
  e = rearrange("a -> a")(x = x)
  f = rearrange("a -> a", 4)(x)
  g = x |> rearrange(b = 2) |> rearrange(b = 2)(_)
  return x * .w * a * b * c * d * e * f * g
}
""",
    "an input without a shape": """
fn f(x [4], n) -> [4] { return x * n }
fn g(k)(x [4], n) -> [4] { return x * n }
layer Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  return x * .w
}
""",
    "inputs of other shapes": """
dim a, b
fn two(x [a, b]) -> [a, b] { return x }
fn more(x [..., a, b]) -> [..., a, b] { return x }
fn last(x [..., a]) -> [..., a] { return x }
fn both(x [..., a], y [..., b]) -> [..., a] { return x * sum(axis = -1)(y) }
fn half(x [2 * a]) -> [a] { return slice(0, 0, a)(x) }
fn threes(x [3 * a, b], n [2]) -> [a] { return full([a], 1.0) * sum(axis = 0)(n) * sum(axis = 0)(sum(axis = 0)(x)) }
fn opens(x [...], y [..., a]) -> [a] { return y * sum(axis = 0)(sum(axis = 0)(x)) }
fn square(x [n, n]) -> [n] { return sum(axis = 0)(x) }
fn flat(x [..., a], y [..., a]) -> [a] { return sum(axis = 0)(x) + sum(axis = 0)(sum(axis = 0)(y)) }
fn broken(x [2 // 0, n]) -> [n] { return sum(axis = 0)(x) }
fn flagged(on)(x [on, 4]) -> [n] { return sum(axis = 0)(x) }
fn times(k)(x [k * a]) -> [a] { return x * k }
dim n
layer Net(k = 4)(x [k], y [k, 2], z [3, k, 2]) -> [k] {
  w: param [k]
  p = two(x)
  q = two(z)
  r = more(x)
  s = last(full([], 1.0))
  u = both(x, y)
  v = both(y, z)
  g = half(full([5], 1.0))
  h = threes(y, x)
  i = opens(y, x)
  j = square(y)
  l = flat(y, z)
  m = broken(x)
  o = flagged(true)(x)
  p1 = flagged(true)(full([1, 4], 1.0))
  p2 = times(1)(x)
  return x * .w * p * q * r * s * u * v * g * h * i * j * l * m * o * p1 * p2
}
""",
    "inputs of other types": """
dim a
fn reals(x [a]) -> [a] { return x }
fn piped(x [a]) -> [a] { return x }
fn named(x [a]) -> [a] { return x }
fn ints(x int [a]) -> [a] { return real(x) }
fn masked(mask bool [...]) -> [...] { return real(mask) }
fn bools(m bool [a]) -> [a] { return real(m) }
fn chosen(m bool [a]) -> [a] { return real(m) }
fn wrong(x [a]) -> int [a] { return x }
fn other(x [a]) -> bool [a] { return x }
fn exact(x [a]) -> [a] { return x }
fn longer(x [a]) -> [a] { return x }
layer Net(n = 4)(x [n], i int [n], k int [2, n], an_integer_of_thirty_letters_x int [n]) -> [n] {
  w: param [n]
  a = reals(i)
  b = named(x = i + 1)
  c = ints(x)
  d = masked(k)
  e = masked(i)
  f = bools(x)
  g = bools(i)
  h = i |> piped
  j = x |> chosen
  l = wrong(x)
  m = other(x)
  o = exact(an_integer_of_thirty_letters_x)
  p = longer(1 + an_integer_of_thirty_letters_x)
  return x * .w * a * b * c * d * e * f * g * h * j * l * m * o * p
}
""",
    "the piped value without a place": """
fn f(x [4], y [4]) -> [4] { return x + y }
layer Net(n = 4)(x [4]) -> [4] {
  w: param [n]
  return x |> f |> f(x) |> f(x, _) |> * .w
}
""",
    "inputs with names of hyperparameters": """
fn f(width, height = 1)(x [4]) -> [4] { return x * width * height }
fn long(a_hyperparameter_whose_name_has_as_many_as_sixty_four_characters)(x [4], y [4]) -> [4] {
  return (x + y) * a_hyperparameter_whose_name_has_as_many_as_sixty_four_characters
}
layer Net(n = 4)(x [4]) -> [4] {
  w: param [n]
  a = f(x, width = 2)
  b = f(x = x, height = 2, width = 1)
  c = f(1)(x, height = n)
  d = softmax(x, dim = -1)
  e = concat([x, x])
  g = concat(axis = 0)([x, x])
  h = concat(x, x, 0)
  i = long(x, x, a_hyperparameter_whose_name_has_as_many_as_sixty_four_characters = n)
  l = long(x, .w, a_hyperparameter_whose_name_has_as_many_as_sixty_four_characters = n)
  j = concat(x, x, x - 1.0)
  k = softmax(x, -1)
  return x * .w * a * b * c * d * e * g * h * i * j * k * l
}
""",
    "sizes that an operand of a step has": """
dim seq
layer Net(n = 4)(x [seq, n], y [seq]) -> [seq, n] {
  w: param [n]
  u: param [2 * n]
  z = x |> concat(axis = -1)(_, x) |> + x |> * .w
  a = x |> * .w |> + y
  b = concat(axis = -1)(x, x) + x * 1.0
  c = x + .u
  return z + a + b + c
}
""",
    "callees that cannot be applied": """
layer L(n)(x [n]) -> [n] {
  w: param [n]
  return x * .w
}
layer M(n) -> [n] {
  w: param [n]
  return .w
}
block Net(n = 4, tanh = 3, size = 3, F = L)(x [n]) -> [n] {
  w: param [n]
  l: L(n)
  k: M(n)
  a = L(n)(x)
  b = tanh(x)
  c = size(x)
  d = F(n)(x)
  e = (m: L(n)) + x
  f = (o: M(n)) + x
  g = .w(x)
  h = .l(n)(x)
  i = .k() + .l(x)
  j = (q: M(n)()) + x
  return x + a + b + c + d + e + f + g + h + i + j
}
""",
    "groups of outputs": """
fn two(x [4]) -> (a [4], b [4]) { return x, x + 1.0 }
fn one(x [4], y [4] = none) -> [4] { return x + y if y != none else x }
layer Net(n = 4)(x [n]) -> [n] {
  w: param [n]
  a = two(x)
  b, c = x
  d, e, f = two(x)
  g = one(two(x))
  h = two(x) + x
  i = one(none)
  j = one(x, none)
  k = one(x, [1.0])
  l = one(one)
  m = one(x, lowest)
  o = one(1.0)
  p = gelu(two(x))
  return x * .w + a + b + c + d + e + f + g + h + i + j + k + l + m + o + p
}
import std { gelu }
""",
    "hyperparameters of other types": """
layer L(n, rate = 0.5, on = true, name = "x", sizes = [1], F = M, act = gelu, count = 3, free = none)(x [n]) -> [n] {
  w: param [n] if on and name == "x" and len(sizes) == 1
  l: F(n)
  require free == none or count == 3
  return x |> .l |> act |> * rate
}
layer M(n)(x [n]) -> [n] {
  w: param [n]
  return x * .w
}
block N(n)(x [n]) -> [n] { return x |> l: M(n) }
dim seq
block Net(n = 4)(x [n], y [seq]) -> [n] {
  a: L(n, 1, 1)
  b: L(n, rate = true, name = 3)
  c: L(n, sizes = 3, F = gelu)
  d: L(n, F = N, act = M)
  e: L(n, count = 2.5, free = "a")
  f: L(x)
  g: L(n = seq)
  h: L(none)
  i: L(n, rate = none)
  j: L()
  k: L(n, count = x)
  return x |> .a |> .b |> .c |> .d |> .e |> .f |> .g |> .h |> .i |> .j |> .k
}
import std { gelu }
""",
    "bound hyperparameters": """
layer L(n, k = 2, on = true)(x [n]) -> [n] {
  w: param [n] if on
  return x * k
}
fn f(a, b)(x [4]) -> [4] { return x * a * b }
block Net(n = 4, P = L(k = 3), Q = L(4), g = f(a = 2))(x [n]) -> [n] {
  p: P(n)
  q: P(n, 3)
  r: P(n, on = false, k = 2)
  s: Q()
  t: P(k = 3)
  u = g(b = 1)(x)
  v = g(1)(x)
  h = g(b = 1)
  y = g(a = 3, b = 1)(x)
  z = h(x)
  return x |> .p |> .q |> .r |> .s |> .t |> + u |> + v |> + y |> + z
}
""",
    "bound with other values": """
layer L(n, k = 2, on = true)(x [n]) -> [n] {
  w: param [n] if on
  return x * k
}
block Net(n = 4, P = L(k = true), Q = L(on = 3, n = 2), R = L(m = 1), S = L(1, 2, true, 4), T = L(k = 1)(k = 2))(
  x [n]
) -> [n] {
  return x |> p: P(n) |> q: Q() |> r: R(n) |> s: S() |> t: T(n)
}
""",
    "ties of other shapes": """
layer L(n, bias = true)(x [n]) -> [n] {
  w: param [n, n]
  b: param [n] if bias
  c: const [n] = [1.0, 2.0, 3.0, 4.0] if n == 4
  return linear(x, .w, .b)
}
block Net(n = 4)(x [n]) -> [n] {
  a: L(n)
  b: L(n, false)
  c: L(n)
  d: L(2 * n)
  e: unused buffer [n]
  f: unused param int [n]
  tie a = b
  tie b = a
  tie a = d
  tie a.w = c
  tie a.b = e
  tie a.b = f
  tie a.x = c.b
  tie a.b = c.y
  tie a.c = c.c
  tie a.w = a.w
  tie a.b = c.b
  tie c.b = a.b
  tie c.w = a.w
  tie c.w = b.w
  return x |> .a |> .b |> .c |> concat(axis = 0)(_, x) |> .d |> slice(0, 0, n)
}
""",
    "collected values": """
dim seq
layer Net(n = 4)(x [seq, n]) -> [seq, n] {
  w: param [n]
  for i in 0..3 {
    a = collect(axis = 2)(.w * i)
    b = collect(axis = -3)(.w * i)
    c = collect(axis = 1)(.w * i)
    d = collect(axis = -2)(.w * i)
    e = collect(axis = 0)(i)
    f = collect(axis = 1.0)(.w)
  }
  for i in 0..0 { g = collect(axis = 0)(.w) }
  for i in 0..seq { h = collect(axis = 2)(.w * i) }
  for i in 1..seq { k = collect(axis = 0)(.w) }
  for i in seq..1 { k2 = collect(axis = 0)(.w) }
  for i in 0..seq { for j in 0..i { l = collect(axis = 0)(.w) } }
  return x * .w + sum(axis = 0)(a) + b + c + d + e + f + g + h + k + k2 + l
}
""",
    "numbers that change in a loop over a dimension": """
dim seq
layer Net(n = 4)(x [seq, n]) -> [seq, n] {
  w: param [n]
  a = .w
  b = 1
  c = .w
  d = x
  for i in 0..seq { a = concat(axis = 0)(a, .w) }
  for i in 0..seq { b = b + 1 }
  for i in 0..seq { d = 2 }
  for i in 0..seq { _ = .w * 2.0 }
  for i in 0..seq { c = c * 2.0 + .w }
  y = x |> concat(axis = 0)(_, x) for i in 0..seq
  return x * a * b * c * d * y
}
""",
    "branches that no model takes": """
dim seq
fn two(x [seq]) -> (a [seq], b [seq]) { return x, x }
fn one(x [seq], y [seq] = none) -> [seq] { return x + y if y != none else x }
fn power(k = 2, on = true)(x [seq]) -> [seq] { return x * k if on else x }
layer Net(n = 4, on = false)(x [seq], y [seq] = none) -> [seq] {
  w: param [n]
  if on {
    _, _ = one(x)
    _ = two(x)
    _, _, _ = two(x)
    _ = one(two(x))
    _ = one("text")
    _ = one(none)
    _ = one(x, none)
    _ = x + "a"
    _ = "a" * x
    _ = x + none
    for o in 0..2.5 { _ = x + 1.0 }
    for o in "a"..n { _ = x + 1.0 }
    _ = "a"(x)
    _ = x |> + "b"
    _ = x |> + x if 3
    _ = 2 if n else 3
    _ = 2 if "n" else 3
    _ = x |> two |> one
    _ = x |> one |> two
    _ = power("c")(x)
    _ = power(2.5)(x)
    _ = power(2 // 0)(x)
    _ = x + lowest
    _ = where(true, x, lowest)
    _ = power(none, on = 3)(x)
    require 3
    _ = not 4
    _ = -"a"
    return x, x if on else x
  }
  return x * sum(axis = 0)(.w) if y == none else x
}
model "it" = Net()
""",
    "names that are defined again": """
dim seq
layer Net(n = 4, on = true)(x [seq, n], seq [n]) -> [seq, n] {
  w: param [n]
  if on {
    a = x
    if n > 2 { b = x } else { b = x * 2.0 }
  } else {
    a = x * 2.0
    b = x
  }
  a = x
  if on { c = x }
  if on { c = x }
  for i in 0..2 {
    d = x
    a = a + d
    for j in 0..2 { i = 3 }
    for i in 0..2 { a = a * 2.0 }
  }
  d = x
  i = x
  n = 3
  Net = x
  e, e = x
  return x * .w + a + b + c + d + i + n + Net + e
}
""",
    "names that are unknown": """
dim seq
layer Net(n = 4)(x [seq, m], y [seq, nn]) -> [seq, n] {
  w: param [n, sequ]
  for i in 0..2 { a = x }
  b = x + a + unknown
  c = x + unknown + uknown + weigth
  weight: param [n]
  d = Linaer(n)(x)
  f: Linea(n)
  g = [sq, N]
  return x * .w + i + .wieght + d + c + b
}
""",
    "statements that are no declarations": """
dim seq
fn f(n)(x [seq, n]) -> [seq, n] { return x * n }
layer Norm(n)(x [seq, n]) -> [seq, n] {
  w: param [n]
  return x * .w
}
block Net(n = 4, F = Norm)(x [seq, n]) -> [seq, n] {
  a: Norm(n)
  y = x * 2.0
  b: y
  c: y * 2.0
  d: f(n)(x)
  e: x
  g: n
  h: F(n)
  i: F
  layer-norm: Norm(n)
  j: relu(x) +
    x
  k: parm [n]
  l: Norm(n)(x)
  gelu(x)
  .a(x)
  m: tanh(x).y
  return x |> .a |> .h |> .i
}
""",
    "calls of functions that declare or call themselves": """
dim seq
fn f(n) { return f(n - 1) if n > 0 else 0 }
fn g(x [seq]) -> [seq] {
  w: param [4]
  return x
}
fn h(n)(x [seq]) -> [seq] { return h(n)(x) }
layer Needs(a, b, c)(x [seq]) -> [seq] { return x * a * b * c }
layer Net(n = 4)(x [seq]) -> [seq] {
  w: param [f(n)]
  a: gelu(x)
  b: Needs()
  c: Needs(1)
  d: Needs(..)
  e = concat(x, x)
  f: Needs(x)
  return g(x) |> .b |> .c |> .d |> h(2) |> + e |> .f
}
import std { gelu }
""",
    "statements after a return": """
dim seq
layer Net(n = 4, on = true)(x [seq]) -> (a [seq], a [seq]) {
  w: unused const [n]
  v: const [n]
  u: frozen param [n]
  if on {
    return x, x
    y = x
  }
  return x, x
  z = x
}
fn nothing(x [seq]) -> [seq] { y = x }
model "it" = Net()
""",
    "outputs of other kinds": """
fn text(x [4]) -> [4] { return "a" if x != none else x }
fn list(x [4]) -> (a [4], b [4]) { return x, [1.0] }
fn absent(x [4], y [4] = none) -> (a [4], b [4]?) { return x, y }
fn needed(x [4], y [4] = none) -> (a [4], [4]) { return y, y }
fn more(x [4]) -> [4] { return x, x }
fn fewer(x [4]) -> (a [4], b [4]) { return x }
fn pair(x [4]) -> (a [4], b [4]) { return x, x * 2.0 }
fn passed(x [4]) -> (a [4], b int [4]) { return pair(x) }
fn wide(x [4]) -> [n] { return concat(axis = 0)(x, x) }
layer Net(n = 4)(x [4]) -> [4] {
  w: param [n]
  a = text(x)
  b, c = list(x)
  d, _ = absent(x)
  e, f = needed(x)
  g = more(x)
  h, i = fewer(x)
  j, k = passed(x)
  l = wide(x)
  m = absent(x) |> * .w
  return a * b * c * d * e * f * g * h * i * j * k * .w * l + "b" * m
}
dim n
""",
}


def test_messages(golden: Callable[[str, str], None]) -> None:
    found: list[str] = []
    for name, text in MISTAKES.items():
        with pytest.raises(archspec.ArchError) as problem:
            load(text)
        found.append(f"-- {name}\n{re.sub(r' --> .*/spec.arch', ' --> spec.arch', str(problem.value))}\n")
    golden("elaboration.txt", "\n".join(found))
