"""What `archspec` exports, each name with the module that it is defined in. `__init__.py` reads this list."""

from archspec.algebra import Polynomial as Polynomial
from archspec.audits.api import Audit as Audit
from archspec.audits.api import audit as audit
from archspec.audits.judge import JudgedLine as JudgedLine
from archspec.comparisons.api import compare as compare
from archspec.comparisons.compare import Comparison as Comparison
from archspec.costs.api import cost as cost
from archspec.costs.cost import Cost as Cost
from archspec.costs.memory import Memory as Memory
from archspec.diffs.api import Difference as Difference
from archspec.diffs.api import diff as diff
from archspec.explanations.api import explain as explain
from archspec.explanations.explain import Explanation as Explanation
from archspec.formulas.api import Formula as Formula
from archspec.formulas.api import formula as formula
from archspec.ir import Type as Type
from archspec.model import Model as Model
from archspec.model import ModelLike as ModelLike
from archspec.pipeline import import_config as import_config
from archspec.pipeline import load as load
from archspec.pipeline import loads as loads
from archspec.pipeline import models as models
from archspec.pytorch.build import to_torch as to_torch
from archspec.scaffolds.api import scaffold as scaffold
from archspec.source import ArchError as ArchError
from archspec.source import Diagnostic as Diagnostic
from archspec.table import Buffer as Buffer
from archspec.table import Params as Params
from archspec.table import Tensor as Tensor
from archspec.verification.api import verify as verify
from archspec.verification.verify import Verification as Verification
from archspec.work import Amount as Amount

__version__: str
