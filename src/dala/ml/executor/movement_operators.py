"""The records of operators that move elements, make them, or see them in another shape."""

from __future__ import annotations

import numpy as np

from dala.ml.executor import constant_folding as folds
from dala.ml.executor import movement
from dala.ml.executor import operator_checks as checks
from dala.ml.executor.operator_record import Operator, on_constants

MOVEMENT: dict[str, Operator] = {
    "Concat": Operator(expand=movement.concat, fold=folds.concatenated, takes_integers=True),
    "Constant": on_constants(folds.constant),
    "ConstantOfShape": on_constants(folds.filled),
    "DepthToSpace": Operator(expand=movement.depth_to_space),
    "Dropout": Operator(passes_on=True, takes_integers=True),
    "Expand": Operator(
        expand=movement.expand, fold=folds.expanded, constants=(1,), takes_integers=True
    ),
    "Flatten": Operator(expand=movement.flatten, fold=folds.flattened, takes_integers=True),
    "Gather": Operator(expand=movement.gather, fold=folds.gathered, takes_integers=True),
    "GatherND": Operator(
        expand=movement.gather_places, takes_integers=True, check=checks.without("batch_dims")
    ),
    "Identity": Operator(passes_on=True, fold=folds.applied(np.asarray), takes_integers=True),
    "Pad": Operator(
        expand=movement.pad,
        constants=(1, 2, 3),
        takes_integers=True,
        check=checks.one_of("mode", "constant", tuple(movement.BORDERS)),
    ),
    "Range": on_constants(folds.ranged),
    "Reshape": Operator(
        expand=movement.reshape, fold=folds.reshaped, constants=(1,), takes_integers=True
    ),
    "Shape": Operator(expand=movement.shape_of, is_known_from_shapes=True),
    "Slice": Operator(
        expand=movement.slice_, fold=folds.sliced, constants=(1, 2, 3, 4), takes_integers=True
    ),
    "SpaceToDepth": Operator(expand=movement.space_to_depth),
    "Split": Operator(expand=movement.split, constants=(1,), takes_integers=True),
    "Squeeze": Operator(
        expand=movement.squeeze, fold=folds.squeezed, constants=(1,), takes_integers=True
    ),
    "Tile": Operator(expand=movement.tile, fold=folds.tiled, constants=(1,), takes_integers=True),
    "Transpose": Operator(expand=movement.transpose, fold=folds.transposed, takes_integers=True),
    "Unsqueeze": Operator(
        expand=movement.unsqueeze, fold=folds.unsqueezed, constants=(1,), takes_integers=True
    ),
}
