"""The records of layers: convolutions, pools, products, normalizations, and what is like them."""

from __future__ import annotations

from dala.ml.executor import convolutions, folding, matmul, pools, rewriting, spatial
from dala.ml.executor import operator_checks as checks
from dala.ml.executor.operator_record import Operator
from dala.ml.executor.pointwise import template

LAYERS: dict[str, Operator] = {
    "AveragePool": Operator(expand=pools.pool),
    "BatchNormalization": Operator(
        write=template("{0} * {1} + {2}"),
        rewrite=rewriting.affine,
        constants=(1, 2, 3, 4),
        check=checks.without("training_mode", "training"),
    ),
    "Col2Im": Operator(expand=folding.columns_to_image, constants=(1, 2)),
    "Conv": Operator(expand=convolutions.conv),
    "ConvTranspose": Operator(expand=folding.transposed_conv),
    "Gemm": Operator(expand=matmul.gemm),
    "GlobalAveragePool": Operator(expand=pools.global_pool),
    "GlobalLpPool": Operator(expand=pools.global_pool),
    "GlobalMaxPool": Operator(expand=pools.global_pool),
    "LpPool": Operator(expand=pools.pool),
    "MatMul": Operator(expand=matmul.multiply, takes_integers=True),
    "MaxPool": Operator(expand=pools.pool, takes_integers=True),
    "MaxUnpool": Operator(expand=pools.unpool, constants=(2,)),
    "Resize": Operator(expand=spatial.resize, constants=(1, 2, 3), check=checks.resize),
    "Upsample": Operator(expand=spatial.resize, constants=(1,), check=checks.resize),
}
"""Every layer that is computed, by its name."""
