"""The activations that recurrent layers name, as expressions of the kernel language."""

from __future__ import annotations

from dala.base.record import value
from dala.errors import ModelError
from dala.ml.executor.pointwise import literal
from dala.ml.onnx.contents import Node

EXPRESSIONS = {
    "affine": "({a} * {x} + {b})",
    "elu": "(max({x}, 0.0) + {a} * (dala.exp(min({x}, 0.0)) - 1.0))",
    "hardsigmoid": "min(max({a} * {x} + {b}, 0.0), 1.0)",
    "leakyrelu": "(max({x}, 0.0) + {a} * min({x}, 0.0))",
    "relu": "max({x}, 0.0)",
    "scaledtanh": "({a} * dala.tanh({b} * {x}))",
    "sigmoid": "dala.sigmoid({x})",
    "softplus": "(max({x}, 0.0) + dala.log(1.0 + dala.exp(-dala.abs({x}))))",
    "softsign": "({x} / (1.0 + dala.abs({x})))",
    "tanh": "dala.tanh({x})",
    "thresholdedrelu": "({x} if {x} > {a} else 0.0)",
}
DEFAULTS = {
    "affine": (1.0, 0.0),
    "elu": (1.0,),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01,),
    "scaledtanh": (1.0, 1.0),
    "thresholdedrelu": (1.0,),
}
"""alpha and beta of those that have them."""


@value
class Activation:
    """A function of one number, which may be clipped before."""

    name: str
    alpha: float
    beta: float
    clip: float

    def of(self, x: str) -> str:
        """The expression, given the name of a value."""
        if self.clip:
            x = f"min(max({x}, {literal(-self.clip)}), {literal(self.clip)})"
        return EXPRESSIONS[self.name].format(x=x, a=literal(self.alpha), b=literal(self.beta))


def activations_of(node: Node, usual: tuple[str, ...], directions: int) -> list[Activation]:
    """The activations that a node names, or the usual ones, for each direction."""
    names = [name.lower() for name in node.get("activations") or list(usual) * directions]
    unknown = [name for name in names if name not in EXPRESSIONS]
    if unknown or len(names) != len(usual) * directions:
        raise ModelError(
            f"{node}: activations are {names}, but {len(usual) * directions} of "
            f"{', '.join(EXPRESSIONS)} are needed."
        )
    # Numbers are given in order, to those functions that take them.
    alphas, betas = (list(node.get(f"activation_{it}") or []) for it in ("alpha", "beta"))
    found = []
    for name in names:
        usually = DEFAULTS.get(name, ())
        alpha = alphas.pop(0) if usually and alphas else (*usually, 0.0)[0]
        beta = betas.pop(0) if len(usually) > 1 and betas else (*usually, 0.0, 0.0)[1]
        found.append(Activation(name, alpha, beta, float(node.get("clip") or 0.0)))
    return found
