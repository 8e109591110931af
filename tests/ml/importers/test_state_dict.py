"""State dicts of PyTorch: the tensors that come out, and what is refused without being run."""

import collections
import io
import os
import pickle
import random
import struct
import zipfile

import numpy as np
import pytest
from ml.importers.pickles import Called, Kept, Named, archive, legacy, tensor

from dala import errors
from dala.ml.importers.state_dict import read_state_dict

COUNT = np.arange(24, dtype=np.float32)
BOTH = pytest.mark.parametrize("write", [legacy, archive])


@BOTH
def test_tensors_come_out_by_name_in_order(write):
    state = {"w": tensor("1", 24, (4, 6), (6, 1)), "b": tensor("0", 2, (2,), (1,), kind="i8")}
    found = read_state_dict(write(state, {"1": COUNT, "0": np.array([7, -8])}))
    assert list(found) == ["w", "b"]
    np.testing.assert_array_equal(found["w"], COUNT.reshape(4, 6))
    assert found["b"].tolist() == [7, -8]
    assert found["b"].dtype == np.int64


@BOTH
@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i4", "i8", "u1"])
def test_each_element_type_is_its_own(write, kind):
    values = np.array([0, 1, 100], kind)
    found = read_state_dict(write({"a": tensor("0", 3, (3,), (1,), kind=kind)}, {"0": values}))
    assert found["a"].dtype == values.dtype
    np.testing.assert_array_equal(found["a"], values)


@BOTH
def test_strides_and_offsets_are_honoured_and_storages_shared(write):
    state = {
        "turned": tensor("0", 24, (6, 4), (1, 6)),
        "part": tensor("0", 24, (2, 3), (12, 2), offset=1),
        "spread": tensor("0", 24, (2, 3), (0, 1), offset=21),
        "single": tensor("0", 24, (), (), offset=5),
        "odd": tensor("0", 24, (1, 2), (1 << 61, 1)),
        "empty": tensor("0", 24, (0, 3), (3, 1)),
    }
    found = read_state_dict(write(state, {"0": COUNT}))
    whole = COUNT.reshape(4, 6)
    np.testing.assert_array_equal(found["turned"], whole.T)
    np.testing.assert_array_equal(found["part"], whole[::2, 1::2])
    np.testing.assert_array_equal(found["spread"], [[21, 22, 23]] * 2)
    assert found["single"] == 5
    assert found["odd"].tolist() == [[0, 1]]
    assert found["empty"].shape == (0, 3)
    assert np.shares_memory(found["turned"], found["part"])
    assert not found["part"].flags.writeable


def test_a_path_is_read_as_its_bytes_are(tmp_path):
    path = tmp_path / "state.pth"
    path.write_bytes(legacy({"w": tensor("0", 24, (24,), (1,))}, {"0": COUNT}))
    np.testing.assert_array_equal(read_state_dict(path)["w"], COUNT)
    np.testing.assert_array_equal(read_state_dict(str(path))["w"], COUNT)


def test_what_a_model_notes_about_its_layers_is_passed_over():
    noted = b"\x80\x02ccollections\nOrderedDict\n)R}X\x01\x00\x00\x00m}sb."
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("x/data.pkl", noted)
    assert read_state_dict(stream.getvalue()) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}],
    ids=["zip", "legacy", "protocol 4"],
)
def test_what_pytorch_writes_is_read_as_pytorch_reads_it(options):
    torch = pytest.importorskip("torch")
    base = torch.arange(24.0)
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    state = collections.OrderedDict(layers.state_dict())
    state |= {"turned": base.reshape(4, 6)[1:, ::2].t(), "part": base[3:5], "none": base[:0]}
    state |= {"half": base.half(), "truth": base > 3, "spread": base[:1].expand(3, 4)}
    stream = io.BytesIO()
    torch.save(state, stream, **options)
    found = read_state_dict(stream.getvalue())
    assert list(found) == list(state)
    for name, wanted in state.items():
        np.testing.assert_array_equal(found[name], wanted.numpy(), strict=True)


# -- refused -------------------------------------------------------------------------------------


class Harmful:
    """What runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("inside", ["alone", "dict", "archive"])
def test_nothing_of_a_harmful_pickle_is_run(tmp_path, protocol, inside):
    harmful = Harmful(tmp_path / "ran")
    data = pickle.dumps({"w": harmful} if inside == "dict" else harmful, protocol)
    if inside == "archive":
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as file:
            file.writestr("archive/data.pkl", data)
        data = stream.getvalue()
    with pytest.raises(errors.ModelError):
        read_state_dict(data)
    assert list(tmp_path.iterdir()) == []


@BOTH
@pytest.mark.parametrize(
    "name", ["os.system", "builtins.eval", "torch._utils._rebuild_parameter", "torch.load"]
)
def test_a_global_that_is_no_tensor_is_refused_by_name(write, name):
    with pytest.raises(errors.ModelError, match=rf"names '{name}'.*state_dict"):
        read_state_dict(write({"w": Called(name, ("true",))}, {}))


@BOTH
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "list, not a dict"),
        ({"epoch": 3}, "int under 'epoch'"),
        ({"state": {"w": tensor("0", 24, (24,), (1,))}}, "dict under 'state'"),
        ({3: tensor("0", 24, (24,), (1,))}, "under '3'"),
        ({"w": Called("torch.FloatStorage", ())}, "calls torch.FloatStorage"),
        ({"w": Kept(("module", 3))}, "storage of a kind"),
        ({"w": tensor("0", -1, (1,), (1,))}, "storage of a kind"),
        ({"w": tensor("0", 24, (25,), (1,))}, r"ends at element 25 .* has 24"),
        ({"w": tensor("0", 24, (2, 3), (12, 8))}, "ends at element 29"),
        ({"w": tensor("0", 24, (24,), (1,), offset=1)}, "ends at element 25"),
        ({"w": tensor("0", 24, (2,), (-1,), offset=4)}, "sizes and strides"),
        ({"w": tensor("0", 24, (2, 2), (1,))}, "sizes and strides"),
        ({"a": tensor("0", 24, (1,), (1,)), "b": tensor("0", 9, (1,), (1,))}, "two storages"),
        (Named("torch.FloatStorage"), "Global, not a dict"),
    ],
)
def test_what_is_no_dict_of_tensors_is_refused(write, value, text):
    with pytest.raises(errors.ModelError, match=text):
        read_state_dict(write(value, {"0": COUNT}))


@BOTH
@pytest.mark.parametrize(
    ("shape", "strides"), [((1 << 31, 1 << 29), (0, 0)), ((0, 1 << 61), (1, 1))]
)
def test_a_tensor_that_claims_more_than_memory_is_refused(write, shape, strides):
    with pytest.raises(errors.LimitError, match="of at most"):
        read_state_dict(write({"w": tensor("0", 24, shape, strides)}, {"0": COUNT}))


@BOTH
def test_a_storage_that_claims_terabytes_is_refused(write):
    state = {"w": tensor("0", 1 << 40, (1 << 40,), (1,))}
    with pytest.raises(errors.ModelError, match=r"4,398,046,511,104 bytes|not 4,398,046,511,104"):
        read_state_dict(write(state, {"0": COUNT}))


def test_a_packed_entry_is_refused():
    data = archive(
        {"w": tensor("0", 10**6, (10**6,), (1,))},
        {"0": np.zeros(10**6, np.float32)},
        zipfile.ZIP_DEFLATED,
    )
    with pytest.raises(errors.ModelError, match="packed"):
        read_state_dict(data)


def test_an_entry_larger_than_its_archive_is_refused():
    elements = 10**6
    data = bytearray(archive({"w": tensor("0", elements, (elements,), (1,))}, {"0": COUNT}))
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 20 : entry + 28] = struct.pack("<II", 4 * elements, 4 * elements)
    with pytest.raises(errors.ModelError, match="its entries are more than its"):
        read_state_dict(bytes(data))


@BOTH
def test_a_file_cut_anywhere_is_refused(write):
    data = write({"w": tensor("0", 24, (4, 6), (6, 1))}, {"0": COUNT})
    for end in range(len(data)):
        with pytest.raises(errors.ModelError):
            read_state_dict(data[:end])


def test_a_storage_that_is_missing_is_refused():
    state = {"w": tensor("0", 24, (24,), (1,))}
    with pytest.raises(errors.ModelError, match="lacks 1 of its storages"):
        read_state_dict(legacy(state, {}))
    with pytest.raises(errors.ModelError, match="lacks the entry 'archive/data/0'"):
        read_state_dict(archive(state, {}))


def test_another_zip_archive_is_refused():
    stream = io.BytesIO()
    np.savez(stream, w=COUNT)
    with pytest.raises(errors.ModelError, match=r"no state dict.*data\.pkl"):
        read_state_dict(stream.getvalue())


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(errors.FileError, match=r"gone\.pth"):
        read_state_dict(tmp_path / "gone.pth")
    with pytest.raises(errors.FileError, match="no plain file"):
        read_state_dict(tmp_path)


def test_an_archive_with_a_flipped_bit_is_refused():
    data = archive({"w": tensor("0", 24, (24,), (1,))}, {"0": COUNT})
    place = data.index(COUNT.tobytes()) + 5
    with pytest.raises(errors.ModelError, match="damaged at the entry 'archive/data/0'"):
        read_state_dict(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])


@pytest.mark.parametrize("key", [b"]", b")", b"N"])
def test_a_dict_by_something_else_than_names_is_refused(key):
    with pytest.raises(errors.ModelError, match="a key is of type"):
        read_state_dict(b"\x80\x02}" + key + b"Ns.")


def test_nested_tuples_that_double_take_no_time():
    doubled = b"\x80\x02)" + b"q\x00h\x00\x86" * 200 + b"X\x01\x00\x00\x00w\x86."
    with pytest.raises(errors.ModelError, match="another kind of pickle"):
        read_state_dict(doubled)


@BOTH
def test_bytes_changed_at_random_give_tensors_or_a_dala_error(write):
    data = write({"w": tensor("0", 24, (4, 6), (6, 1))}, {"0": COUNT})
    seed = 7
    print(f"{seed=}")
    draw = random.Random(seed)
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(changed))
            changed[place : place + draw.randint(0, 2)] = draw.randbytes(draw.randint(0, 2))
        try:
            found = read_state_dict(bytes(changed))
        except errors.DalaError:
            continue
        assert all(array.tobytes() is not None for array in found.values())
