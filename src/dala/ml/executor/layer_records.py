"""The records of layers: convolutions, pools, products, normalizations, and what is like them."""

from __future__ import annotations

from dala.ir.types import F32, S32, Scalar
from dala.ml.executor import (
    attention,
    contributed,
    convolutions,
    deformed,
    folding,
    grids,
    losses,
    matmul,
    normalizations,
    pools,
    quantization,
    recurrent,
    recurrent_cells,
    rewriting,
    spatial,
    spectra,
)
from dala.ml.executor import operator_checks as checks
from dala.ml.executor.operator_record import Operator, pointwise
from dala.ml.executor.pointwise import template
from dala.ml.onnx.contents import Node

ROOT = 0.70710678
"""The root of one half."""


def _integers(_: Node) -> Scalar:
    return S32


LAYERS: dict[str, Operator] = {
    "AffineGrid": Operator(expand=grids.affine_grid, constants=(1,)),
    "Attention": Operator(expand=attention.attention),
    "AveragePool": Operator(expand=pools.pool),
    "BatchNormalization": Operator(
        write=template("{0} * {1} + {2}"),
        rewrite=rewriting.affine,
        check=checks.without("training_mode", "training"),
    ),
    "BlackmanWindow": Operator(fold=spectra.window(spectra.BLACKMAN), on_host=True),
    "CenterCropPad": Operator(expand=grids.center_crop_pad, constants=(1,), takes_integers=True),
    "Col2Im": Operator(expand=folding.columns_to_image, constants=(1, 2)),
    "Conv": Operator(expand=convolutions.conv),
    "ConvInteger": Operator(
        expand=quantization.convolve_integers, takes_integers=True, gives=_integers
    ),
    "ConvTranspose": Operator(expand=folding.transposed_conv),
    "DFT": Operator(expand=spectra.transform, constants=(1, 2)),
    "DeformConv": Operator(expand=deformed.deformed_conv),
    "DequantizeLinear": Operator(
        expand=quantization.dequantize,
        fold=quantization.dequantized,
        takes_integers=True,
        gives=lambda _: F32,
    ),
    "DynamicQuantizeLinear": Operator(expand=quantization.quantize_by_extremes, gives=_integers),
    "GRU": Operator(expand=recurrent.recurrent(recurrent_cells.gru)),
    "Gemm": Operator(expand=matmul.gemm),
    "GlobalAveragePool": Operator(expand=pools.global_pool),
    "GlobalLpPool": Operator(expand=pools.global_pool),
    "GlobalMaxPool": Operator(expand=pools.global_pool),
    "GridSample": Operator(expand=grids.grid_sample),
    "GroupNormalization": Operator(expand=normalizations.group),
    "HammingWindow": Operator(fold=spectra.window(spectra.HAMMING), on_host=True),
    "HannWindow": Operator(fold=spectra.window(spectra.HANN), on_host=True),
    "InstanceNormalization": Operator(expand=normalizations.instance),
    "LRN": Operator(expand=normalizations.local_response),
    "LSTM": Operator(expand=recurrent.recurrent(recurrent_cells.lstm)),
    "LayerNormalization": Operator(expand=normalizations.layer),
    "LpNormalization": Operator(expand=normalizations.by_norm),
    "LpPool": Operator(expand=pools.pool),
    "MatMul": Operator(expand=matmul.multiply, takes_integers=True),
    "MatMulInteger": Operator(
        expand=quantization.multiply_integers, takes_integers=True, gives=_integers
    ),
    "MaxPool": Operator(expand=pools.pool, takes_integers=True),
    "MaxUnpool": Operator(expand=pools.unpool, constants=(2,)),
    "MeanVarianceNormalization": Operator(expand=normalizations.mean_variance),
    "MelWeightMatrix": Operator(fold=spectra.mel_weights, on_host=True),
    "NegativeLogLikelihoodLoss": Operator(expand=losses.likelihood),
    "QLinearConv": Operator(
        expand=quantization.convolve_levels, takes_integers=True, gives=_integers
    ),
    "QLinearMatMul": Operator(
        expand=quantization.multiply_levels, takes_integers=True, gives=_integers
    ),
    "QuantizeLinear": Operator(expand=quantization.quantize, takes_integers=True, gives=_integers),
    "RMSNormalization": Operator(expand=normalizations.root_mean_square),
    "RNN": Operator(expand=recurrent.recurrent(recurrent_cells.rnn)),
    "Resize": Operator(expand=spatial.resize, constants=(1, 2, 3)),
    "RoiAlign": Operator(expand=grids.roi_align),
    "RotaryEmbedding": Operator(expand=attention.rotated),
    "STFT": Operator(expand=spectra.transform_frames, constants=(1, 3)),
    "SimplifiedLayerNormalization": Operator(expand=normalizations.root_mean_square),
    "SoftmaxCrossEntropyLoss": Operator(expand=losses.cross_entropy),
    "Upsample": Operator(expand=spatial.resize, constants=(1,)),
    "com.microsoft.BiasGelu": pointwise(
        f"0.5 * ({{0}} + {{1}}) * (1.0 + dala.erf(({{0}} + {{1}}) * {ROOT}))"
    ),
    "com.microsoft.FusedMatMul": Operator(expand=contributed.multiply_turned),
    "com.microsoft.Gelu": pointwise(f"0.5 * {{0}} * (1.0 + dala.erf({{0}} * {ROOT}))"),
    "com.microsoft.MatMulNBits": Operator(
        expand=contributed.multiply_packed, constants=(1, 2, 3, 4)
    ),
    "com.microsoft.QuickGelu": pointwise("{0} * dala.sigmoid({alpha} * {0})", alpha=1.702),
    "com.microsoft.SkipLayerNormalization": Operator(expand=contributed.skip_layer),
    "com.microsoft.SkipSimplifiedLayerNormalization": Operator(expand=contributed.skip_layer),
}
"""Every layer that is computed, by its name."""
