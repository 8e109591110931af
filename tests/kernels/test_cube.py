"""Files of colour tables: what is read of them, and how they are refused."""

from __future__ import annotations

import numpy as np
import pytest

from dala import errors
from dala.kernels.image import cube
from dala.kernels.image.cube import parse_cube, read_cube

ROWS = np.linspace(0, 1, 24, dtype=np.float32).reshape(8, 3)
CUBE = "LUT_3D_SIZE 2\n" + "\n".join(" ".join(map(str, row)) for row in ROWS)
CURVES = "LUT_1D_SIZE 3\n0 0 0\n0.25 .5 7.5e-1\n1 +1 1.0"


def test_red_varies_fastest():
    table = parse_cube(CUBE, "a.cube").table
    assert table.shape == (2, 2, 2, 3)
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table[0, 0, 1], ROWS[1])
    np.testing.assert_array_equal(table[0, 1, 0], ROWS[2])
    np.testing.assert_array_equal(table[1, 0, 0], ROWS[4])


def test_curves_are_a_row_for_each_entry():
    found = parse_cube(CURVES, "a.cube")
    np.testing.assert_array_equal(found.table, [[0, 0, 0], [0.25, 0.5, 0.75], [1, 1, 1]])
    assert (found.least, found.most) == ((0, 0, 0), (1, 1, 1))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_comments_titles_and_blank_lines_are_passed_over(end):
    text = f'\ufeff# made by hand\n\nTITLE "LUT_3D_SIZE 9 # no"\n   \n{CUBE}\n\t\n# 1 2\n'
    found = parse_cube(text.replace("\n", end), "a.cube")
    np.testing.assert_array_equal(found.table.reshape(-1, 3), ROWS)


@pytest.mark.parametrize(
    ("lines", "least", "most"),
    [
        ("DOMAIN_MIN -1 0 0.5", (-1, 0, 0.5), (1, 1, 1)),
        ("DOMAIN_MAX 2 4 8", (0, 0, 0), (2, 4, 8)),
        ("DOMAIN_MAX 3 3 3\nDOMAIN_MIN 1 2 2.5", (1, 2, 2.5), (3, 3, 3)),
        ("LUT_3D_INPUT_RANGE -0.5 2", (-0.5,) * 3, (2,) * 3),
        ("LUT_1D_INPUT_RANGE 5 6", (0,) * 3, (1,) * 3),
    ],
)
def test_the_domain_is_as_the_file_says(lines, least, most):
    for text in (f"{lines}\n{CUBE}", CUBE.replace("\n", f"\n{lines}\n", 1)):
        found = parse_cube(text, "a.cube")
        assert (found.least, found.most) == (least, most)


def test_curves_have_an_input_range_of_their_own():
    found = parse_cube("LUT_1D_INPUT_RANGE 0 4\n" + CURVES, "a.cube")
    assert (found.least, found.most) == ((0, 0, 0), (4, 4, 4))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "look.cube: it has no table: LUT_1D_SIZE or LUT_3D_SIZE is missing."),
        ("0 0 0", "look.cube, line 1: a row comes before its size: give LUT_1D_SIZE or LUT_3D"),
        ("LUT_3D_SIZE 2\n\n0 0", "look.cube, line 3: a row is 3 finite numbers, not '0 0'."),
        ("LUT_1D_SIZE 2\n0 0 0 0", "line 2: a row is 3 finite numbers, not '0 0 0 0'."),
        ("LUT_1D_SIZE 2\n0 1,5 0", "line 2: a row is 3 finite numbers, not '0 1,5 0'."),
        ("LUT_1D_SIZE 2\n0 0 -inf", "line 2: a row is 3 finite numbers, not '0 0 -inf'."),
        ("LUT_1D_SIZE 2\n0 0 1e99", "line 2: a row is 3 finite numbers, not '0 0 1e99'."),
        ("LUT_3D_SIZE 1", "line 1: LUT_3D_SIZE is an integer from 2 to 65, not '1'."),
        ("LUT_3D_SIZE 66", "line 1: LUT_3D_SIZE is an integer from 2 to 65, not '66'."),
        ("LUT_3D_SIZE", "line 1: LUT_3D_SIZE is an integer from 2 to 65, not ''."),
        ("LUT_3D_SIZE 2.5", "from 2 to 65, not '2.5'."),
        ("LUT_3D_SIZE " + "9" * 5000, "from 2 to 65, not '9999"),
        ("LUT_1D_SIZE 65537", "LUT_1D_SIZE is an integer from 2 to 65536, not '65537'."),
        ("LUT_1D_SIZE 2\nLUT_3D_SIZE 2", "line 2: LUT_3D_SIZE is one too many: a file has one tab"),
        ("DOMAIN_MIN 0 0 0\nDOMAIN_MIN 0 0 0", "line 2: DOMAIN_MIN is one too many: a file has o"),
        ("DOMAIN_MAX 1 1", "line 1: DOMAIN_MAX is 3 finite numbers, not '1 1'."),
        ("LUT_3D_INPUT_RANGE 1", "LUT_3D_INPUT_RANGE is 2 finite numbers, not '1'."),
        ("DOMAIN_MIN 0 1 0\n" + CURVES, "look.cube: its domain is from (0.0, 1.0, 0.0) to (1.0, "),
        ("LUT_4D_SIZE 2", "line 1: 'LUT_4D_SIZE' is no keyword: those known are TITLE, LUT_1D_SIZ"),
        (CURVES + "\nTITLE x\nDOMAIN_MIN 0 0 0", "line 6: DOMAIN_MIN comes after the first row: "),
        (CURVES + "\n1 1 1", "line 5: it has more rows than the 3 of LUT_1D_SIZE 3."),
        (CURVES[:-8], "line 3: it ends after 2 of the 3 rows of LUT_1D_SIZE 3."),
        ("PK\x03\x04" + "z" * 500, "line 1: 'PK\\x03\\x04zzz"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, words):
    with pytest.raises(errors.ArgumentError) as caught:
        parse_cube(text, "look.cube")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_largest_tables_are_read(tmp_path):
    path = tmp_path / "large.cube"
    path.write_text("LUT_3D_SIZE 65\n" + "0.25 0.5 0.75\n" * 65**3)
    table = read_cube(path).table
    assert table.shape == (65, 65, 65, 3)
    assert (table == [0.25, 0.5, 0.75]).all()
    path.write_text("LUT_1D_SIZE 65536\n" + "0.25 0.5 0.75\n" * 65536)
    assert read_cube(path).table.shape == (65536, 3)


def test_files_that_cannot_be_read_are_refused(tmp_path, monkeypatch):
    missing, binary = tmp_path / "missing.cube", tmp_path / "binary.cube"
    with pytest.raises(errors.FileError, match=r"missing.cube cannot be read: No such file"):
        read_cube(missing)
    with pytest.raises(errors.FileError, match=r"cannot be read: it is not a file"):
        read_cube(tmp_path)
    with pytest.raises(errors.FileError, match=r"cannot be read: embedded null"):
        read_cube("a\0b.cube")
    binary.write_bytes(b"\xff\xfe\0")
    with pytest.raises(errors.ArgumentError, match=r"binary.cube is not text in UTF-8"):
        read_cube(binary)
    monkeypatch.setattr(cube, "LARGEST_FILE_BYTES", 2)
    with pytest.raises(errors.LimitError, match=r"has 3 bytes, but a .cube file has at most 2"):
        read_cube(binary)
