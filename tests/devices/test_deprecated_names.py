"""Names of the device API that were renamed and still work for one release."""

import pytest

from dala.devices import device as device_module


def test_held_is_memory_statistics_and_says_so():
    with pytest.warns(DeprecationWarning, match="is called MemoryStatistics now"):
        assert device_module.Held is device_module.MemoryStatistics


def test_an_unknown_name_of_the_device_module_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Holder'"):
        _ = device_module.Holder
