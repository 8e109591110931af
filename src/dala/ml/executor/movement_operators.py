"""The records of operators that move elements, make them, or see them in another shape."""

from __future__ import annotations

import numpy as np

from dala.ml.executor import constant_folding as folds
from dala.ml.executor import einsum, movement, placement
from dala.ml.executor import operator_checks as checks
from dala.ml.executor.host_operators import on_host
from dala.ml.executor.operator_record import Operator

MOVEMENT: dict[str, Operator] = {
    "BitCast": Operator(expand=movement.bit_cast, takes_integers=True, check=checks.castable),
    "Compress": Operator(expand=placement.places_kept, constants=(1,), takes_integers=True),
    "Concat": Operator(expand=movement.concat, fold=folds.concatenated, takes_integers=True),
    "Constant": on_host(folds.constant),
    "ConstantOfShape": on_host(folds.filled),
    "DepthToSpace": Operator(expand=movement.depth_to_space, takes_integers=True),
    "Dropout": Operator(expand=movement.dropout, constants=(1, 2), takes_integers=True),
    "Einsum": Operator(expand=einsum.einsum, takes_integers=True),
    "Expand": Operator(
        expand=movement.expand, fold=folds.expanded, constants=(1,), takes_integers=True
    ),
    "EyeLike": Operator(expand=movement.eye_like, is_known_from_shapes=True, takes_integers=True),
    "Flatten": Operator(expand=movement.flatten, fold=folds.flattened, takes_integers=True),
    "Gather": Operator(expand=movement.gather, fold=folds.gathered, takes_integers=True),
    "GatherElements": Operator(expand=placement.gather_elements, takes_integers=True),
    "GatherND": Operator(expand=placement.gather_places, takes_integers=True),
    "Identity": Operator(passes_on=True, fold=folds.applied(np.asarray), takes_integers=True),
    "OneHot": Operator(expand=placement.one_hot, constants=(1,), takes_integers=True, like=2),
    "Pad": Operator(
        expand=movement.pad,
        constants=(1, 2, 3),
        takes_integers=True,
        check=checks.one_of("mode", "constant", tuple(movement.BORDERS)),
    ),
    "Range": on_host(folds.ranged),
    "Reshape": Operator(
        expand=movement.reshape, fold=folds.reshaped, constants=(1,), takes_integers=True
    ),
    "ReverseSequence": Operator(expand=placement.reverse_sequence, takes_integers=True),
    "Scatter": Operator(expand=placement.scatter_elements, takes_integers=True),
    "ScatterElements": Operator(expand=placement.scatter_elements, takes_integers=True),
    "ScatterND": Operator(expand=placement.scatter_places, takes_integers=True),
    "Shape": Operator(expand=movement.shape_of, is_known_from_shapes=True, takes_integers=True),
    "Size": Operator(expand=movement.size_of, is_known_from_shapes=True, takes_integers=True),
    "Slice": Operator(
        expand=movement.slice_, fold=folds.sliced, constants=(1, 2, 3, 4), takes_integers=True
    ),
    "SpaceToDepth": Operator(expand=movement.space_to_depth, takes_integers=True),
    "Split": Operator(expand=movement.split, fold=folds.split, constants=(1,), takes_integers=True),
    "Squeeze": Operator(
        expand=movement.squeeze, fold=folds.squeezed, constants=(1,), takes_integers=True
    ),
    "Tile": Operator(expand=movement.tile, fold=folds.tiled, constants=(1,), takes_integers=True),
    "TopK": Operator(expand=placement.top_k, constants=(1,), takes_integers=True),
    "Transpose": Operator(expand=movement.transpose, fold=folds.transposed, takes_integers=True),
    "Trilu": Operator(expand=placement.trilu, constants=(1,), takes_integers=True),
    "Unsqueeze": Operator(
        expand=movement.unsqueeze, fold=folds.unsqueezed, constants=(1,), takes_integers=True
    ),
}
