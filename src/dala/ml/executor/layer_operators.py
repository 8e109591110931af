"""The records of layers: convolutions, products, pools, normalizations, resizing."""

from __future__ import annotations

from dala.ml.executor import convolutions, matmul, rewriting, spatial
from dala.ml.executor import operator_checks as checks
from dala.ml.executor.operator_record import Operator
from dala.ml.executor.pointwise import template

LAYERS: dict[str, Operator] = {
    "AveragePool": Operator(expand=spatial.pool, check=checks.pool),
    "BatchNormalization": Operator(
        write=template("{0} * {1} + {2}"),
        rewrite=rewriting.affine,
        constants=(1, 2, 3, 4),
        check=checks.without("training_mode", "training"),
    ),
    "Conv": Operator(expand=convolutions.conv, constants=(1, 2), check=checks.spatial),
    "ConvTranspose": Operator(
        expand=convolutions.transposed_conv, constants=(1, 2), check=checks.spatial
    ),
    "Gemm": Operator(expand=matmul.gemm, constants=(1, 2), check=checks.without("transA")),
    "GlobalAveragePool": Operator(expand=spatial.global_pool),
    "GlobalMaxPool": Operator(expand=spatial.global_pool),
    "MatMul": Operator(expand=matmul.multiply),
    "MaxPool": Operator(expand=spatial.pool, check=checks.pool),
    "Resize": Operator(expand=spatial.resize, constants=(1, 2, 3), check=checks.resize),
    "Upsample": Operator(expand=spatial.resize, constants=(1,), check=checks.resize),
}
