"""The records of layers: convolutions, pools, products, normalizations, and what is like them."""

from __future__ import annotations

from dala.ml.executor import (
    attention,
    convolutions,
    folding,
    grids,
    losses,
    matmul,
    normalizations,
    pools,
    recurrent,
    recurrent_cells,
    rewriting,
    spatial,
)
from dala.ml.executor import operator_checks as checks
from dala.ml.executor.operator_record import Operator
from dala.ml.executor.pointwise import template

LAYERS: dict[str, Operator] = {
    "AffineGrid": Operator(expand=grids.affine_grid, constants=(1,)),
    "Attention": Operator(expand=attention.attention),
    "AveragePool": Operator(expand=pools.pool),
    "BatchNormalization": Operator(
        write=template("{0} * {1} + {2}"),
        rewrite=rewriting.affine,
        check=checks.without("training_mode", "training"),
    ),
    "CenterCropPad": Operator(expand=grids.center_crop_pad, constants=(1,), takes_integers=True),
    "Col2Im": Operator(expand=folding.columns_to_image, constants=(1, 2)),
    "Conv": Operator(expand=convolutions.conv),
    "ConvTranspose": Operator(expand=folding.transposed_conv),
    "GRU": Operator(expand=recurrent.recurrent(recurrent_cells.gru)),
    "Gemm": Operator(expand=matmul.gemm),
    "GlobalAveragePool": Operator(expand=pools.global_pool),
    "GlobalLpPool": Operator(expand=pools.global_pool),
    "GlobalMaxPool": Operator(expand=pools.global_pool),
    "GridSample": Operator(expand=grids.grid_sample),
    "GroupNormalization": Operator(expand=normalizations.group),
    "Hardmax": Operator(expand=losses.hardmax),
    "InstanceNormalization": Operator(expand=normalizations.instance),
    "LRN": Operator(expand=normalizations.local_response),
    "LSTM": Operator(expand=recurrent.recurrent(recurrent_cells.lstm)),
    "LayerNormalization": Operator(expand=normalizations.layer),
    "LogSoftmax": Operator(expand=losses.log_softmax),
    "LpNormalization": Operator(expand=normalizations.by_norm),
    "LpPool": Operator(expand=pools.pool),
    "MatMul": Operator(expand=matmul.multiply, takes_integers=True),
    "MaxPool": Operator(expand=pools.pool, takes_integers=True),
    "MaxUnpool": Operator(expand=pools.unpool, constants=(2,)),
    "MeanVarianceNormalization": Operator(expand=normalizations.mean_variance),
    "NegativeLogLikelihoodLoss": Operator(expand=losses.likelihood),
    "RMSNormalization": Operator(expand=normalizations.root_mean_square),
    "RNN": Operator(expand=recurrent.recurrent(recurrent_cells.rnn)),
    "Resize": Operator(expand=spatial.resize, constants=(1, 2, 3)),
    "RoiAlign": Operator(expand=grids.roi_align),
    "RotaryEmbedding": Operator(expand=attention.rotated),
    "SoftmaxCrossEntropyLoss": Operator(expand=losses.cross_entropy),
    "Upsample": Operator(expand=spatial.resize, constants=(1,)),
}
"""Every layer that is computed, by its name."""
