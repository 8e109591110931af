"""Emitted code is written into the folder that `DALA_DUMP_CODE` names."""

from __future__ import annotations

import numpy as np

from dala.gpu import compute


def test_every_module_is_written_down_once(device, monkeypatch, tmp_path):
    monkeypatch.setenv("DALA_DUMP_CODE", str(tmp_path / "code"))
    kernel = compute.Kernel.register("odd", "def odd(x):\n    return x * 1.6180339", replace=True)
    for _ in range(2):
        x = compute.from_numpy(np.ones(7, np.float32))
        compute.run_kernel(kernel, [x], x)
        assert compute.read(x)[0] == np.float32(1.6180339)
    compute.Kernel.unregister("odd")
    written = "0x3FF9E377" if device == "cpu" else "1.618"
    files = [file for file in (tmp_path / "code").iterdir() if written in file.read_text()]
    assert [file.suffix for file in files] == [".ll" if device == "cpu" else ".wgsl"]
