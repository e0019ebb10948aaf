"""What each operation refuses, with the message and the operand that is wrong; what its record says of it."""

from math import inf as INF
from math import nan as NAN
from typing import Any

import pytest

from archspec import Type
from archspec.core.algebra import symbol
from archspec.ir.ops import OPS, REQUIRED, OpError

SEQ, N = symbol("seq"), symbol("n")
SYMBOLS = {"seq": SEQ, "n": N, "seq - 9": SEQ - 9}
DTYPES = {"r": "real", "i": "int", "b": "bool"}


def operands(text: str) -> list[Type | None]:
    """The types in a text such as `r2,3 i4 -`: reals [2, 3], integers [4] and an input that is not given."""
    found: list[Type | None] = []
    for word in text.split(" "):
        sizes = [SYMBOLS[size] if size in SYMBOLS else int(size) for size in word[1:].split(",") if size]
        found += [Type(tuple(sizes), DTYPES[word[0]]) if word != "-" else None] if word else []
    return found


REFUSED: list[tuple[str, str, dict[str, Any], str | None, str]] = [
    ("neg", "b2", {}, "x", "expects numbers, found bool [2]"),
    ("neg", "", {}, "x", "is missing its input `x`"),
    ("neg", "r2 r2", {}, None, "expects 1 tensors, found 2"),
    ("add", "r2 b2", {}, "b", "expects numbers, found bool [2]"),
    ("add", "r2,3 r2", {}, "b", "cannot broadcast [2, 3] with [2]: 3 != 2"),
    ("add", "rseq rn", {}, "b", "cannot broadcast [seq] with [n]: seq is not known to equal n"),
    ("eq", "b2 i2", {}, "b", "cannot mix booleans and numbers"),
    ("not", "r2", {}, "x", "expects bool elements as `x`, found real [2]"),
    ("where", "r2 r2 r2", {}, "condition", "expects bool elements as `condition`, found real [2]"),
    ("where", "b2 b2 i2", {}, "b", "cannot mix booleans and numbers"),
    ("where", "b2 r3 r2", {}, "a", "cannot broadcast [2] with [3]: 2 != 3"),
    ("where", "b2 r2 r3", {}, "b", "cannot broadcast [2] with [3]: 2 != 3"),
    ("dropout", "r2", {'rate': 1}, "rate", "expects a number from 0 to below 1 as `rate`, found 1"),
    ("dropout", "r2", {'rate': True}, "rate", "expects a number from 0 to below 1 as `rate`, found true"),
    ("dropout", "r2", {'rate': -0.1}, "rate", "expects a number from 0 to below 1 as `rate`, found the real -0.1"),
    ("dropout", "i2", {'rate': 0.1}, "x", "expects real elements as `x`, found int [2]"),
    ("dropout", "r2", {'rate': 'a'}, "rate", 'expects a number from 0 to below 1 as `rate`, found the string "a"'),
    ("lowest", "i2", {}, "x", "expects a real tensor as `x`, found int"),
    ("matmul", "r3 r3,2", {}, "a", "expects a tensor with at least 2 axes as `a`, found real [3]"),
    ("matmul", "r2,3 r3", {}, "b", "expects a tensor with at least 2 axes as `b`, found real [3]"),
    ("matmul", "r2,3 r2,3", {}, "b", "expects the rows of [2, 3] to match the columns of [2, 3]: 2 != 3"),
    ("matmul", "r5,2,3 r4,3,2", {}, "b", "cannot broadcast [5] with [4]: 5 != 4"),
    ("forward_substitution", "r3 r3,2", {}, "a", "expects a tensor with at least 2 axes as `a`, found real [3]"),
    ("forward_substitution", "r3,3 r3", {}, "b", "expects a tensor with at least 2 axes as `b`, found real [3]"),
    ("forward_substitution", "r2,3 r2,3", {}, "a", "expects the columns of [2, 3] to match its rows: 2 != 3"),
    ("forward_substitution", "r3,3 r2,3", {}, "b", "expects the rows of [2, 3] to match the rows of [3, 3]: 2 != 3"),
    ("forward_substitution", "r5,3,3 r4,3,2", {}, "b", "cannot broadcast [5] with [4]: 5 != 4"),
    ("linear", "r r4,3 -", {}, "x", "expects a tensor with at least one axis as `x`, found real []"),
    ("linear", "r2,3 r4,2 -", {}, "x", "expects the last size of [2, 3] to match `in` of the weight [4, 2]: 3 != 2"),
    ("group_norm", "r2,4 r4,1 -", {'groups': 2, 'eps': 0.5},
     "weight", "expects shape [4] for `weight`, found [4, 1]: the number of axes differs"),
    ("linear", "r2,3 r4,3 r3", {}, "bias", "expects shape [4] for `bias`, found [3]: 3 != 4"),
    ("linear", "r2,3 - -", {}, "weight", "is missing its input `weight`"),
    ("expert_linear", "r2,3 i2 r4,3 -", {}, "weight", "expects a `weight` [n, out, in], found real [4, 3]"),
    ("expert_linear", "r2,3 r2 r6,4,3 -", {}, "experts", "expects int elements as `experts`, found real [2]"),
    ("expert_linear", "r2,3 i5 r6,4,3 -", {}, "experts", "cannot broadcast [2] with [5]: 2 != 5"),
    ("expert_linear", "r2,3 i2 r6,4,3 r6,3", {}, "bias", "expects shape [6, 4] for `bias`, found [6, 3]: 3 != 4"),
    ("conv", "r2,6,9 r4,6,3 -", {'stride': 0}, "stride", "expects `stride` to be at least 1, found 0"),
    ("conv", "r2,6,9 r4,6,3 -", {'padding': -1}, "padding", "expects `padding` to be at least 0, found -1"),
    ("conv", "r2,6,9 r4,6,3 -", {'dilation': 0}, "dilation", "expects `dilation` to be at least 1, found 0"),
    ("conv", "r2,6,9 r4,6,3 -", {'groups': 0}, "groups", "expects `groups` to be at least 1, found 0"),
    ("conv", "r2,6,9 r4,6,3 -", {'stride': (1, 1)},
     "stride", "expects an integer or a list of 1 as `stride`, found a list of 2"),
    ("conv", "r2,6,9 r4,6,3 -", {'padding': (1, 1)},
     "padding", "expects an integer or a list of 1 as `padding`, found a list of 2"),
    ("conv", "r2,6,9 r4,6,3 -", {'dilation': (1, 1)},
     "dilation", "expects an integer or a list of 1 as `dilation`, found a list of 2"),
    ("conv", "r2,6,9 r4,6,3 -", {'groups': 1.5}, "groups", "expects an integer as `groups`, found the real 1.5"),
    ("conv", "r2,6,9 r4,6,3 -", {'transposed': 1}, "transposed", "expects a boolean as `transposed`, found 1"),
    ("conv", "r2,6,9 r4,6,3 -", {'groups': 4},
     "x", "expects the channels of [2, 6, 9] to match the weight [4, 6, 3]: 6 != 24"),
    ("conv", "r2,6,9 r4,6,3 -", {'groups': 3},
     "x", "expects the channels of [2, 6, 9] to match the weight [4, 6, 3]: 6 != 18"),
    ("conv", "r2,6 r4,6,3 -", {}, "x", "expects a tensor with at least 3 axes as `x`, found real [2, 6]"),
    ("conv", "r2,6,9 r4,3,3 -", {}, "x", "expects the channels of [2, 6, 9] to match the weight [4, 3, 3]: 6 != 3"),
    ("conv", "r2,6,2 r4,6,3 -", {},
     "x", "cannot fit a kernel that spans 3 on an axis of size 2 with padding 0 at both ends"),
    ("conv", "r2,6,2 r4,6,3 -", {'padding': 1, 'dilation': 2},
     "x", "cannot fit a kernel that spans 5 on an axis of size 2 with padding 1 at both ends"),
    ("conv", "r2,6,9 r4,6,3 r6", {}, "bias", "expects shape [4] for `bias`, found [6]: 6 != 4"),
    ("conv", "r2,4,9 r6,4,3 -", {'transposed': True},
     "x", "expects the channels of [2, 4, 9] to match the weight [6, 4, 3]: 4 != 6"),
    ("conv", "r2,4,9 r4,5,3 r4", {'transposed': True}, "bias", "expects shape [5] for `bias`, found [4]: 4 != 5"),
    ("conv", "r2,6,9 r4,2,3 -", {'groups': 3}, "groups", "cannot divide 4 channels into 3 groups"),
    ("layer_norm", "r2,3 - -", {'eps': -1}, "eps", "expects a number of at least 0 as `eps`, found -1"),
    ("layer_norm", "r2,3 - -", {'eps': INF}, "eps", "expects a number of at least 0 as `eps`, found the real inf"),
    ("layer_norm", "r - -", {'eps': 0}, "x", "expects a tensor with at least one axis as `x`, found real []"),
    ("layer_norm", "r2,3 r2 -", {'eps': 0}, "weight", "expects shape [3] for `weight`, found [2]: 2 != 3"),
    ("layer_norm", "r2,3 r3 r2", {'eps': 0}, "bias", "expects shape [3] for `bias`, found [2]: 2 != 3"),
    ("layer_norm", "r2,3 - r2", {'eps': 0}, "bias", "expects shape [3] for `bias`, found [2]: 2 != 3"),
    ("layer_norm", "r2,3 r -", {'eps': 0},
     "weight", "expects a tensor with at least one axis as `weight`, found real []"),
    ("layer_norm", "r2,3 - r", {'eps': 0}, "bias", "expects a tensor with at least one axis as `bias`, found real []"),
    ("layer_norm", "r3 r2,3 -", {'eps': 0}, "x", "expects a tensor with at least 2 axes as `x`, found real [3]"),
    ("layer_norm", "r2,3 - -", {'eps': True}, "eps", "expects a number of at least 0 as `eps`, found true"),
    ("group_norm", "r2 - -", {'groups': 1, 'eps': 0},
     "x", "expects a tensor with at least 2 axes as `x`, found real [2]"),
    ("group_norm", "r2,6 - -", {'groups': 4, 'eps': 0}, "groups", "cannot divide 6 channels into 4 groups"),
    ("group_norm", "r2,6 - -", {'groups': 0, 'eps': 0}, "groups", "expects `groups` to be at least 1, found 0"),
    ("group_norm", "r2,6 r2 -", {'groups': 2, 'eps': 0}, "weight", "expects shape [6] for `weight`, found [2]: 2 != 6"),
    ("group_norm", "r2,6 - r2", {'groups': 2, 'eps': 0}, "bias", "expects shape [6] for `bias`, found [2]: 2 != 6"),
    ("group_norm", "r2,6 - -", {'groups': 2, 'eps': -1}, "eps", "expects a number of at least 0 as `eps`, found -1"),
    ("one_hot", "i2", {'count': 0}, "count", "expects sizes of at least 1 as `count`, found 0"),
    ("one_hot", "r2", {'count': 1}, "ids", "expects int elements as `ids`, found real [2]"),
    ("embedding", "i2 r", {}, "table", "expects a tensor with at least one axis as `table`, found real []"),
    ("gather", "r2,3 i2", {'axis': 0}, "index", "expects an `index` with 2 axes for real [2, 3], found int [2]"),
    ("gather", "r2,3 i2,4", {'axis': 0}, "index", "expects shape [2, 3] for `index`, found [2, 4]: 4 != 3"),
    ("gather", "r2,3 i2,3", {'axis': 2}, "axis", "cannot use axis 2: it is out of range for real [2, 3]"),
    ("max_pool", "r2,3", {'kernel': 2}, "x", "expects a tensor with at least 3 axes as `x`, found real [2, 3]"),
    ("max_pool", "r2,3,9", {'kernel': 0}, "kernel", "expects `kernel` to be at least 1, found 0"),
    ("max_pool", "r2,3,9", {'kernel': 2, 'stride': 0}, "stride", "expects `stride` to be at least 1, found 0"),
    ("max_pool", "r2,3,9", {'kernel': 2, 'padding': -1}, "padding", "expects `padding` to be at least 0, found -1"),
    ("max_pool", "r2,3,9", {'kernel': 3, 'padding': 2},
     "padding", "expects a padding of at most half of the kernel, found 2 for 3"),
    ("max_pool", "r2,3,2", {'kernel': 3}, "x", "cannot fit a window of 3 on an axis of size 2 with padding 0"),
    ("max_pool", "r2,3,9", {'kernel': (2, 2)},
     "kernel", "expects an integer or a list of 1 as `kernel`, found a list of 2"),
    ("max_pool", "r2,3,9", {'kernel': 2, 'stride': (1, 1)},
     "stride", "expects an integer or a list of 1 as `stride`, found a list of 2"),
    ("max_pool", "r2,3,9", {'kernel': 2, 'padding': (1, 1)},
     "padding", "expects an integer or a list of 1 as `padding`, found a list of 2"),
    ("sum", "b2", {'axis': 0}, "x", "expects numbers, found bool [2]"),
    ("sum", "r2", {'axis': 1}, "axis", "cannot use axis 1: it is out of range for real [2]"),
    ("sum", "r2", {'axis': -2}, "axis", "cannot use axis -2: it is out of range for real [2]"),
    ("sum", "r2", {'axis': (0, 0)}, "axis", "expects one axis or a list of different axes"),
    ("sum", "r2", {'axis': ()}, "axis", "expects one axis or a list of different axes"),
    ("sum", "r2", {'axis': 0, 'keep': 1}, "keep", "expects a boolean as `keep`, found 1"),
    ("sum", "r", {'axis': 0}, "axis", "cannot use axis 0: it is out of range for real []"),
    ("amax", "r2", {'axis': 1}, "axis", "cannot use axis 1: it is out of range for real [2]"),
    ("amax", "r2", {'axis': 0, 'keep': None}, "keep", "expects a boolean as `keep`, found `none`"),
    ("softmax", "r2", {'axis': 1}, "axis", "cannot use axis 1: it is out of range for real [2]"),
    ("cumsum", "r2", {'axis': 1}, "axis", "cannot use axis 1: it is out of range for real [2]"),
    ("topk", "r3", {'k': 0, 'axis': 0}, "k", "expects sizes of at least 1 as `k`, found 0"),
    ("topk", "r3", {'k': 4, 'axis': 0}, "k", "cannot take 4 elements from 3"),
    ("topk", "r3", {'k': 1, 'axis': 1}, "axis", "cannot use axis 1: it is out of range for real [3]"),
    ("argmax", "r3", {'axis': 1}, "axis", "cannot use axis 1: it is out of range for real [3]"),
    ("argmax", "r3", {'axis': 0, 'keep': 2}, "keep", "expects a boolean as `keep`, found 2"),
    ("fft", "r3", {'axis': 1}, "axis", "cannot use axis 1: it is out of range for real [3]"),
    ("fft", "r3", {'axis': (0, 0)}, "axis", "expects one axis or a list of different axes"),
    ("reshape", "r2,3", {'shape': (2, 2)},
     "shape", "cannot turn [2, 3] into [2, 2]: element counts must match, but 4 != 6"),
    ("reshape", "r2,3", {'shape': 6}, "shape", "expects a list of sizes as `shape`, found 6"),
    ("reshape", "r2,3", {'shape': (2, -1)}, "shape", "expects sizes of at least 1 as `shape`, found -1"),
    ("reshape", "r2,3", {'shape': (0, 3)}, "shape", "expects sizes of at least 1 as `shape`, found 0"),
    ("reshape", "r2,3", {'shape': (2.0, 3)}, "shape", "expects an integer as `shape`, found the real 2.0"),
    ("reshape", "r2,seq", {'shape': (N,)},
     "shape", "cannot turn [2, seq] into [n]: element counts must match, but n is not known to equal 2*seq"),
    ("transpose", "r2,3", {'a': 2, 'b': 0}, "a", "cannot use axis 2: it is out of range for real [2, 3]"),
    ("transpose", "r2,3", {'a': 0, 'b': -3}, "b", "cannot use axis -3: it is out of range for real [2, 3]"),
    ("permute", "r2,3", {'order': (0, 2)}, "order", "cannot use axis 2: it is out of range for real [2, 3]"),
    ("permute", "r2,3", {'order': (0,)}, "order", "expects `order` to name each of the 2 axes of real [2, 3] once"),
    ("expand", "r2,3", {'shape': (3,)}, "shape", "cannot stretch [2, 3] to [3], which has fewer axes"),
    ("expand", "r2,3", {'shape': (4, 3)}, "shape", "cannot stretch [2, 3] to [4, 3]: 2 != 4"),
    ("expand", "r2,3", {'shape': None}, "shape", "expects a list of sizes as `shape`, found `none`"),
    ("concat", "r2,3 r2,4", {'axis': 0}, "tensors2", "cannot join [2, 3] and [2, 4] on axis 0: 3 != 4"),
    ("concat", "r2,3 r2,3 r3", {'axis': 0},
     "tensors3", "expects tensors with the same number of axes, found real [2, 3] and real [3]"),
    ("concat", "r2,3", {'axis': 2}, "axis", "cannot use axis 2: it is out of range for real [2, 3]"),
    ("concat", "r2 b2", {'axis': 0}, "tensors2", "cannot mix booleans and numbers"),
    ("concat", "", {'axis': 0}, "tensors", "is missing its input `tensors`"),
    ("stack", "r2 r2 r3", {'axis': 0}, "tensors3", "expects tensors of one shape, found real [2] and real [3]"),
    ("stack", "r2", {'axis': 2}, "axis", "expects a new axis from -2 to 1 for real [2], found 2"),
    ("stack", "r2", {'axis': -3}, "axis", "expects a new axis from -2 to 1 for real [2], found -3"),
    ("stack", "r2", {'axis': 0.5}, "axis", "expects an integer as `axis`, found the real 0.5"),
    ("split", "r2,3", {'sizes': (2, 2), 'axis': 1},
     "sizes", "expects sizes that add up to the size of the axis: 4 != 3"),
    ("split", "r2,3", {'sizes': (), 'axis': 1}, "sizes", "expects a list of sizes as `sizes`, found an empty list"),
    ("split", "r2,3", {'sizes': 3, 'axis': 1}, "sizes", "expects a list of sizes as `sizes`, found 3"),
    ("split", "r2,3", {'sizes': (3, 0), 'axis': 1}, "sizes", "expects sizes of at least 1 as `sizes`, found 0"),
    ("split", "r2,3", {'sizes': (3,), 'axis': 2}, "axis", "cannot use axis 2: it is out of range for real [2, 3]"),
    ("slice", "r5", {'axis': 0, 'step': 0}, "step", "expects `step` to be at least 1, found 0"),
    ("slice", "r5", {'axis': 0, 'start': 5}, "start", "selects nothing from 5 up to 5 on an axis of size 5"),
    ("slice", "r5", {'axis': 0, 'start': 3, 'stop': 3}, "stop", "selects nothing from 3 up to 3 on an axis of size 5"),
    ("slice", "r5", {'axis': 0, 'stop': -6}, "stop", "selects nothing from 0 up to -1 on an axis of size 5"),
    ("slice", "r5", {'axis': 0, 'start': True}, "start", "expects an integer as `start`, found true"),
    ("slice", "r5", {'axis': 0, 'stop': 2.5}, "stop", "expects an integer as `stop`, found the real 2.5"),
    ("slice", "r5", {'axis': 1}, "axis", "cannot use axis 1: it is out of range for real [5]"),
    ("slice", "r5", {'axis': 0, 'step': SEQ}, "step", "expects an integer as `step`, found the dimension seq"),
    ("pick", "r5", {'axis': 0, 'index': 5}, "index", "cannot select element 5 on an axis of size 5"),
    ("pick", "r5", {'axis': 0, 'index': -6}, "index", "cannot select element -6 on an axis of size 5"),
    ("pick", "r5", {'axis': 0, 'index': None}, "index", "expects an integer as `index`, found `none`"),
    ("pick", "r5", {'axis': 1, 'index': 0}, "axis", "cannot use axis 1: it is out of range for real [5]"),
    ("pick", "rseq", {'axis': 0, 'index': SEQ},
     "index", "cannot select element the dimension seq on an axis of size seq"),
    ("pad", "r2", {'axis': 0, 'before': -1}, "before", "expects `before` to be at least 0, found -1"),
    ("pad", "r2", {'axis': 0, 'after': -1}, "after", "expects `after` to be at least 0, found -1"),
    ("pad", "r2", {'axis': 0, 'before': 0.5}, "before", "expects an integer as `before`, found the real 0.5"),
    ("pad", "r2", {'axis': 0, 'after': None}, "after", "expects an integer as `after`, found `none`"),
    ("pad", "r2", {'axis': 0, 'value': True}, "value", "expects a number as `value`, found true"),
    ("pad", "r2", {'axis': 0, 'value': NAN}, "value", "expects a number as `value`, found the real nan"),
    ("pad", "r2", {'axis': 0, 'value': 'a'}, "value", 'expects a number as `value`, found the string "a"'),
    ("pad", "b2", {'axis': 0}, "value", "expects a boolean as `value`, found 0"),
    ("pad", "i2", {'axis': 0, 'value': 0.5}, "value", "expects an integer as `value`, found the real 0.5"),
    ("pad", "i2", {'axis': 0, 'value': 2**53 + 1},
     "value", "expects `value` to be between -2^53 and 2^53, found 9007199254740993"),
    ("pad", "i2", {'axis': 0, 'value': -(2**53) - 1},
     "value", "expects `value` to be between -2^53 and 2^53, found -9007199254740993"),
    ("pad", "r2", {'axis': 1}, "axis", "cannot use axis 1: it is out of range for real [2]"),
    ("roll", "r2,3", {'shift': (1,), 'axis': 0},
     "shift", "expects one axis and one `shift`, or a list of shifts, one per axis"),
    ("roll", "r2,3", {'shift': 1, 'axis': (0,)},
     "shift", "expects one axis and one `shift`, or a list of shifts, one per axis"),
    ("roll", "r2,3", {'shift': (1, 2), 'axis': (0,)},
     "shift", "expects one axis and one `shift`, or a list of shifts, one per axis"),
    ("roll", "r2,3", {'shift': 0.5, 'axis': 0}, "shift", "expects an integer as `shift`, found the real 0.5"),
    ("roll", "r2,3", {'shift': (1, 'a'), 'axis': (0, 1)},
     "shift", 'expects an integer as `shift`, found the string "a"'),
    ("roll", "r2,3", {'shift': 1, 'axis': 2}, "axis", "cannot use axis 2: it is out of range for real [2, 3]"),
    ("arange", "", {'stop': 0}, "stop", "expects sizes of at least 1 as `stop`, found 0"),
    ("arange", "", {'stop': 1.5}, "stop", "expects an integer as `stop`, found the real 1.5"),
    ("full", "", {'shape': 2, 'value': 1}, "shape", "expects a list of sizes as `shape`, found 2"),
    ("full", "", {'shape': (2,), 'value': NAN},
     "value", "expects a number or a boolean as `value`, found the real nan"),
    ("full", "", {'shape': (2,), 'value': 2**63},
     "value", "expects a number or a boolean as `value`, found an integer that does not fit in 64 bits"),
    ("full", "", {'shape': (2,), 'value': 'a'},
     "value", 'expects a number or a boolean as `value`, found the string "a"'),
    ("table", "", {'values': 3}, "values", "expects a list of numbers or booleans as `values`, found 3"),
    ("table", "", {'values': ()}, "values", "expects at least one item in each list of `values`"),
    ("table", "", {'values': ((1, 2), (3,))}, "values", "expects lists of equal length in `values`"),
    ("table", "", {'values': ((1, 2), 3)}, "values", "expects lists of equal length in `values`"),
    ("table", "", {'values': (1, 'a')}, "values", 'expects numbers or booleans in `values`, found the string "a"'),
    ("table", "", {'values': (1, True)}, "values", "cannot mix booleans with numbers in `values`"),
    ("table", "", {'values': ((True,), (1,))}, "values", "cannot mix booleans with numbers in `values`"),
    ("table", "", {'values': ((1,), ())}, "values", "expects at least one item in each list of `values`"),
    ("full", "", {'shape': (2**63,), 'value': 1},
     "shape", "expects an integer as `shape`, found an integer that does not fit in 64 bits"),
    ("sum", "r2", {'axis': 'a'}, "axis", 'expects an integer as `axis`, found the string "a"'),
    ("sum", "r2", {}, "axis", "is missing its hyperparameter `axis`"),
    ("sum", "r2", {'axis': 2**63},
     "axis", "expects an integer as `axis`, found an integer that does not fit in 64 bits"),
    ("table", "", {}, "values", "is missing its hyperparameter `values`"),
    ("concat", "r4611686018427387904 r4611686018427387904", {'axis': 0},
     None, "produces a size that does not fit in 64 bits"),
    ("reshape", "rseq", {'shape': (0,)}, "shape", "expects sizes of at least 1 as `shape`, found 0"),
    ("sum", "r2", {"axis": 2**63 - 1}, "axis", "cannot use axis 9223372036854775807: it is out of range for real [2]"),
    ("slice", "r5", {"axis": 0, "step": 1 - 2**63}, "step",
     "expects `step` to be at least 1, found -9223372036854775807"),
    ("linear", "r2,3 r4 -", {}, "weight", "expects a `weight` [out, in], found real [4]"),
    ("linear", "r2,3 r1,4,3 -", {}, "weight", "expects a `weight` [out, in], found real [1, 4, 3]"),
    ("conv", "r2,3,9 r4,3,2,2 -", {}, "weight",
     "expects a `weight` with 3 axes for real [2, 3, 9], found real [4, 3, 2, 2]"),
    ("permute", "r2,3", {"order": 1}, "order", "expects a list of axes as `order`, found 1"),
    ("permute", "r2,3", {"order": (1, 1)}, "order", "expects `order` to name each of the 2 axes of real [2, 3] once"),
    ("slice", "r5", {"axis": 0, "start": -6}, "start", "cannot start at -6, before the beginning of an axis of size 5"),
    ("slice", "r5", {"axis": 0, "stop": 6}, "stop", "cannot stop at 6 on an axis of size 5"),
    ("stack", "r" + ",".join("1" * 64), {"axis": 0}, None, "produces 65 axes, but a tensor has at most 64"),
    ("reshape", "rseq", {"shape": (SEQ, *[1] * 64)}, "shape", "expects at most 64 sizes as `shape`, found 65"),
]  # fmt: skip


@pytest.mark.parametrize("name", dict.fromkeys(row[0] for row in REFUSED))
def test_operands_and_hyperparameters_are_refused(name: str) -> None:
    for given, settings, argument, message in [row[1:] for row in REFUSED if row[0] == name]:
        with pytest.raises(OpError) as found:
            OPS[name].rule(operands(given), settings)
        help = next((help for part, help in HELP.items() if part in message), None)
        error, whole = found.value, f"`{OPS[name].symbol or name}` {message}"
        assert (error.message, error.argument, error.help) == (whole, argument, help)


CAST = "convert it with `int(x)` or `real(x)`, or select elements with `where(mask, a, b)`"
HELP = {
    "cannot mix booleans and numbers": CAST,
    "expects numbers, found": CAST,
    "cannot broadcast": "make each pair of sizes equal, or one of them 1, starting from the last axis",
    "expects bool elements": "compare it with a number, as in `x != 0`",
    "expects int elements": "convert it with `int(x)`",
    "expects real elements": "convert it with `real(x)`",
    "expects a real tensor": "convert it with `real(x)`",
    "out of range for real []": "use a tensor with at least one axis",
    "out of range for real [2, 3]": "use an axis from 0 to 1, or from -2 to -1 to count from the end",
    "out of range": "use an axis from 0 to 0, or from -1 to -1 to count from the end",
    "as `shape`, found -1": "write each size: none is inferred",
    "cannot stretch [2, 3] to [4, 3]": "make each size 1 or equal to the new size, starting from the last axis",
}
"""The suggested fixes, by a part of the message."""

ACCEPTED: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("add", "r2,3 i3", {}, ["r2,3"]),
    ("add", "i2,1 i3", {}, ["i2,3"]),
    ("add", "r1,seq r4,1", {}, ["r4,seq"]),
    ("where", "b2,1 i3 r", {}, ["r2,3"]),
    ("where", "b2 b b2", {}, ["b2"]),
    ("dropout", "r2", {"rate": 0}, ["r2"]),
    ("matmul", "i5,1,2,3 r4,3,6", {}, ["r5,4,2,6"]),
    ("forward_substitution", "i5,1,3,3 i4,3,6", {}, ["r5,4,3,6"]),
    ("linear", "i2,3 r4,3 -", {}, ["r2,4"]),
    ("expert_linear", "i2,1,3 i5 i6,4,3 r6,4", {}, ["r2,5,4"]),
    ("conv", "r2,6,3 r4,6,3 r4", {}, ["r2,4,1"]),
    ("conv", "r2,6,9,8 r4,3,2,3 -", {"stride": (2, 1), "padding": (0, 2), "dilation": (3, 2), "groups": 2},
     ["r2,4,3,8"]),
    ("conv", "r2,6,9 r6,4,3 r8", {"transposed": True, "stride": 2, "padding": 1, "groups": 2, "dilation": 3},
     ["r2,8,21"]),
    ("layer_norm", "i2,3,4 - r3,4", {"eps": 0}, ["r2,3,4"]),
    ("group_norm", "i2,6 r6 r6", {"groups": 3, "eps": 0}, ["r2,6"]),
    ("one_hot", "i2", {"count": 1}, ["i2,1"]),
    ("embedding", "i2,3 b5,4,6", {}, ["b2,3,4,6"]),
    ("gather", "b2,3 i2,7", {"axis": -1}, ["b2,7"]),
    ("max_pool", "i2,3,2,9", {"kernel": (4, 2), "padding": (2, 1)}, ["r2,3,1,5"]),
    ("mean_pool", "r2,3,9", {"kernel": 3, "stride": 2, "padding": 1}, ["r2,3,5"]),
    ("sum", "i2,3,4", {"axis": (0, -1)}, ["i3"]),
    ("amax", "r2,3,4", {"axis": 1, "keep": True}, ["r2,1,4"]),
    ("topk", "i2,3", {"k": 3}, ["i2,3", "i2,3"]),
    ("topk", "r2,3", {"k": 1, "axis": 0}, ["r1,3", "i1,3"]),
    ("argmax", "r2,3", {}, ["i2"]),
    ("argmax", "r2,3", {"axis": 0, "keep": True}, ["i1,3"]),
    ("fft", "i2,3", {"axis": (0, 1)}, ["r2,3"]),
    ("transpose", "b2,3,4", {"a": 0}, ["b4,3,2"]),
    ("permute", "i2,3,4", {"order": (-1, 0, 1)}, ["i4,2,3"]),
    ("expand", "b1,3", {"shape": (2, 4, 3)}, ["b2,4,3"]),
    ("concat", "i2,3 r2,4 i2,1", {"axis": -1}, ["r2,8"]),
    ("stack", "i2 i2 r2", {"axis": 1}, ["r2,3"]),
    ("stack", "b2,4", {"axis": -3}, ["b1,2,4"]),
    ("split", "i2,3", {"sizes": (1, 2)}, ["i2,1", "i2,2"]),
    ("slice", "r5", {"axis": 0, "start": 4}, ["r1"]),
    ("slice", "r5", {"axis": 0, "start": -5, "stop": -1, "step": 3}, ["r2"]),
    ("slice", "r2,seq", {"axis": 1, "start": -3}, ["r2,3"]),
    ("pick", "r2,5", {"axis": 1, "index": 4}, ["r2"]),
    ("pick", "r2,5", {"axis": 0, "index": -2}, ["r5"]),
    ("pad", "i2", {"axis": 0, "before": 3, "value": 2**53}, ["i5"]),
    ("pad", "b2", {"axis": 0, "after": 1, "value": False}, ["b3"]),
    ("roll", "b2,3", {"shift": (1, -9), "axis": (1, 0)}, ["b2,3"]),
    ("full", "", {"shape": (), "value": 2**63 - 1}, ["i"]),
    ("full", "", {"shape": (2,), "value": True}, ["b2"]),
    ("table", "", {"values": ((1, 2.5, 3), (4, 5, 6))}, ["r2,3"]),
    ("table", "", {"values": (True, False)}, ["b2"]),
]  # fmt: skip


def test_results_have_types() -> None:
    for name, given, settings, results in ACCEPTED:
        assert [*OPS[name].rule(operands(given), settings)] == [operands(text)[0] for text in results]


FACTS: dict[str, str] = {
    "commutative": "add mul min max eq ne and or",
    "associative": "add mul min max and or",
    "casts": "real float32 int",
    "widens": "float32",
    "trains": "dropout",
    "rearranges": "reshape transpose permute concat stack split roll",
    "alone": "lowest",
    "interval": "int add sub mul min max cumsum reshape transpose permute expand pad roll arange full table",
    "macs": "matmul forward_substitution linear expert_linear conv",
}


@pytest.mark.parametrize("fact", FACTS)
def test_facts_of_operations(fact: str) -> None:
    assert " ".join(op.name for op in OPS.values() if getattr(op, fact)) == FACTS[fact]


def test_figures_of_operations() -> None:
    ops = OPS.values()
    assert {op.name: op.least for op in ops if op.least is not None} == {"log": 1, "sqrt": 0}
    assert {op.name: op.chooses for op in ops if op.chooses is not None} == {"topk": 1, "argmax": 0}
    roles = {"where": "mask", "softmax": "weights", "matmul": "product"}
    assert {op.name: op.attention for op in ops if op.attention} == roles
    over = {"sum": "input", "amax": "input", "topk": "input", "argmax": "input"}
    assert {op.name: op.over for op in ops if op.over != "result"} == over | {
        "max_pool": "window", "mean_pool": "window"}  # fmt: skip
    several = {"softmax": 5, "layer_norm": 5, "group_norm": 5}
    assert {op.name: op.work for op in ops if op.work > 1} == several
    free = [op.name for op in ops if not op.work and op.group in ("Elementwise", "Along an axis")]
    assert free == ["real", "float32", "int", "dropout", "lowest", "fft"]
    assert {op.name for op in ops if op.work and op.group not in ("Elementwise", "Along an axis")} == {
        "layer_norm", "group_norm", "one_hot", "max_pool", "mean_pool"}  # fmt: skip


def test_operations_without_a_form_of_their_own() -> None:
    """They are equal to themselves only, or are left out in evaluation."""
    plain = "exp log sin cos tanh sigmoid erf dropout table"
    assert " ".join(op.name for op in OPS.values() if not op.normal) == plain
    assert repr(REQUIRED) == "REQUIRED" and str(OPS["conv"].attributes[0]).startswith("Attribute(")


def test_code_of_operations() -> None:
    forms = {op.name: op.torch for op in OPS.values() if op.torch is not None}
    assert OPS.keys() - forms.keys() == {"real", "float32"}
    memory = {name: torch.memory for name, torch in forms.items() if torch.memory != "new"}
    assert memory == {
        **dict.fromkeys(["dropout", "reshape"], "whole"),
        **dict.fromkeys(["fft", "expand", "split", "slice", "pick"], "view"),
        **dict.fromkeys(["transpose", "permute"], "turned"),
    }
    alike = {name for name, torch in forms.items() if not torch.promotes}
    assert alike == {"matmul", "linear", "expert_linear", "conv", "layer_norm", "group_norm"}
    assert {name for name, torch in forms.items() if torch.helper} == {"topk", "fft", "expert_linear"}
    python = {op.name: op.python for op in OPS.values() if op.python}
    assert {name: text for name, text in python.items() if text != f"math.{name}(x)"} == {
        "neg": "-x", "abs": "abs(x)", "sigmoid": "1 / (1 + math.exp(-x))", "real": "float(x)", "float32": "float(x)",
        "int": "int(x)", "not": "not x", "add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b",
        "floordiv": "a // b", "mod": "a % b", "pow": "a ** b", "min": "min(a, b)", "max": "max(a, b)",
        "eq": "a == b", "ne": "a != b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b",
        "and": "a and b", "or": "a or b",
    }  # fmt: skip
    assert [name for name, text in python.items() if text == f"math.{name}(x)"] == [
        "exp", "log", "sqrt", "sin", "cos", "tanh", "erf", "floor"]  # fmt: skip


def test_roles_of_inputs_and_hyperparameters() -> None:
    ops = OPS.values()
    indexes = {(op.name, each.name): each.indexes for op in ops for each in op.inputs if each.indexes}
    assert indexes == {
        ("expert_linear", "experts"): "weight bias", ("embedding", "ids"): "table", ("gather", "index"): "x",
    }  # fmt: skip
    shapes = {op.name: [each.shape for each in op.inputs] for op in ops if any(i.shape != "[...]" for i in op.inputs)}
    assert shapes == {
        "matmul": ["[..., n, k]", "[..., k, m]"],
        "forward_substitution": ["[..., n, n]", "[..., n, m]"],
        "linear": ["[..., in]", "[out, in]", "[out]"],
        "expert_linear": ["[..., in]", "[...]", "[n, out, in]", "[n, out]"],
        "conv": ["[batch, in, ...n]", "[out, in / groups, ...kernel]", "[out]"],
        "layer_norm": ["[..., d]", "[d]", "[d]"],
        "group_norm": ["[batch, channels, ...n]", "[channels]", "[channels]"],
        "embedding": ["[...]", "[n, d]"],
        "max_pool": ["[batch, channels, ...n]"],
        "mean_pool": ["[batch, channels, ...n]"],
    }
    positions = [(op.name, each.name) for op in ops for each in op.attributes if each.is_position]
    assert positions == [("slice", "start"), ("slice", "stop"), ("pick", "index")]
    optional = [(op.name, each.name) for op in ops for each in op.inputs if each.optional]
    assert optional == [
        ("linear", "bias"), ("expert_linear", "bias"), ("conv", "bias"), ("layer_norm", "weight"),
        ("layer_norm", "bias"), ("group_norm", "weight"), ("group_norm", "bias"),
    ]  # fmt: skip
