"""Determinants and inverses of matrices, written in the kernel language.

The inverse of a singular matrix is not finite: nothing in a kernel fails.
"""

from __future__ import annotations

from typing import Any

from dala.lang.language_names import INTRINSICS, MATRICES

cross, dot, transpose = (INTRINSICS[name] for name in ("cross", "dot", "transpose"))
mat2, mat3, mat4 = (MATRICES[name] for name in ("mat2", "mat3", "mat4"))


def determinant_2(m: Any) -> Any:
    return m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]


def determinant_3(m: Any) -> Any:
    a, b, c = m
    return dot(a, cross(b, c))


def determinant_4(m: Any) -> Any:
    """By minors of the upper and the lower two rows."""
    a, b, c, d = m
    upper = (
        (a.x * b.y - b.x * a.y) * (c.z * d.w - d.z * c.w)
        - (a.x * b.z - b.x * a.z) * (c.y * d.w - d.y * c.w)
        + (a.x * b.w - b.x * a.w) * (c.y * d.z - d.y * c.z)
    )
    lower = (
        (a.y * b.z - b.y * a.z) * (c.x * d.w - d.x * c.w)
        - (a.y * b.w - b.y * a.w) * (c.x * d.z - d.x * c.z)
        + (a.z * b.w - b.z * a.w) * (c.x * d.y - d.x * c.y)
    )
    return upper + lower


def inverse_2(m: Any) -> Any:
    adjugate = mat2(m[1, 1], -m[0, 1], -m[1, 0], m[0, 0])
    return adjugate / (m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0])


def inverse_3(m: Any) -> Any:
    """Its columns are the cross products of the rows."""
    a, b, c = m
    first = cross(b, c)
    return transpose(mat3(first, cross(c, a), cross(a, b))) / dot(a, first)


def inverse_4(m: Any) -> Any:
    """The adjugate by minors of two rows, which the determinant is made of, too."""
    a, b, c, d = m
    s0, s1, s2 = a.x * b.y - b.x * a.y, a.x * b.z - b.x * a.z, a.x * b.w - b.x * a.w
    s3, s4, s5 = a.y * b.z - b.y * a.z, a.y * b.w - b.y * a.w, a.z * b.w - b.z * a.w
    t0, t1, t2 = c.x * d.y - d.x * c.y, c.x * d.z - d.x * c.z, c.x * d.w - d.x * c.w
    t3, t4, t5 = c.y * d.z - d.y * c.z, c.y * d.w - d.y * c.w, c.z * d.w - d.z * c.w
    adjugate = mat4(
        b.y * t5 - b.z * t4 + b.w * t3,
        a.z * t4 - a.y * t5 - a.w * t3,
        d.y * s5 - d.z * s4 + d.w * s3,
        c.z * s4 - c.y * s5 - c.w * s3,
        b.z * t2 - b.x * t5 - b.w * t1,
        a.x * t5 - a.z * t2 + a.w * t1,
        d.z * s2 - d.x * s5 - d.w * s1,
        c.x * s5 - c.z * s2 + c.w * s1,
        b.x * t4 - b.y * t2 + b.w * t0,
        a.y * t2 - a.x * t4 - a.w * t0,
        d.x * s4 - d.y * s2 + d.w * s0,
        c.y * s2 - c.x * s4 - c.w * s0,
        b.y * t1 - b.x * t3 - b.z * t0,
        a.x * t3 - a.y * t1 + a.z * t0,
        d.y * s1 - d.x * s3 - d.z * s0,
        c.x * s3 - c.y * s1 + c.z * s0,
    )
    upper = s0 * t5 - s1 * t4 + s2 * t3
    return adjugate / (upper + (s3 * t2 - s4 * t1 + s5 * t0))
