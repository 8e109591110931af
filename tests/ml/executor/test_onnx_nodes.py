"""A sample of ONNX's own node tests; `python -m benchmarks.onnx_nodes` counts all of them."""

from __future__ import annotations

import pytest

from benchmarks.onnx_nodes import cases, outcome_of

SAMPLE = """
    and_bcast4v2d argmax_default_axis_random_select_last_index argmin_keepdims_random
    attention_3d_gqa bitshift_left_uint16 bitwise_xor_ui64_bcast_3v1d cast_DOUBLE_to_FLOAT16
    castlike_FLOAT_to_BFLOAT16_expanded center_crop_pad_crop_and_pad compress_1
    concat_3d_axis_negative_2 constant_pad_axes constantofshape_int_zeros
    cumsum_1d_reverse_exclusive cumsum_2d_axis_1 depthtospace_crd_mode_example
    dropout_default_mask einsum_batch_diagonal einsum_batch_matmul eyelike_with_dtype
    gather_elements_negative_indices gathernd_example_int32_batch_dim1 gelu_tanh_2
    hardmax_axis_1 if isinf_positive layer_normalization_3d_axis1_epsilon
    logsoftmax_large_number loop11 max_float16 mean_example mod_mixed_sign_float64
    nllloss_NCd1d2d3_none_no_weight_negative_ii nonmaxsuppression_center_point_box_format
    nonzero_example onehot_negative_indices pow_types_int64_float32
    range_int32_type_negative_delta reduce_l2_keep_dims_random reduce_log_sum_exp_empty_set
    reduce_max_bool_inputs reduce_prod_negative_axes_keepdims_random reflect_pad
    reversesequence_time rotary_embedding_interleaved scan9_sum scatter_elements_with_axis
    scatternd_add sce_mean_weight_ii_4d_log_prob shrink_soft slice_neg_steps
    softmax_large_number split_variable_parts_2d_opset18 swish thresholdedrelu tile
    top_k_smallest tril_out_neg unique_not_sorted_without_axis where_long_example wrap_pad
"""


@pytest.fixture(scope="module")
def tests():
    return {case.name: case for case in cases()}


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_node_tests_passes(device, tests):
    chosen = {name: tests[f"test_{name}"] for name in SAMPLE.split()}
    outcomes = {name: outcome_of(case) for name, case in chosen.items()}
    assert {name: found for name, found in outcomes.items() if found[0] != "passed"} == {}
