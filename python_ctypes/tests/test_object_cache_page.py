"""The cache as CV-CUDA's own page tells it: scripts for `cvcuda` that run here unchanged."""

from __future__ import annotations

import textwrap

from support import output_of

AS_CVCUDA = """
import sys
import cvc
sys.modules["cvcuda"] = cvc
from foreign import foreign
"""


def run_script(script: str) -> list[str]:
    return output_of(AS_CVCUDA + textwrap.dedent(script)).split("\n")[:-1]


def test_owned_objects_grow_the_cache_and_wraps_do_not():
    assert run_script(
        """
        import cvcuda
        import numpy as np

        print(cvcuda.current_cache_size_inbytes())
        tensor = cvcuda.Tensor((16, 32, 4), np.float32, cvcuda.TensorLayout.HWC)
        print(cvcuda.current_cache_size_inbytes())
        wrapped = cvcuda.as_tensor(foreign(np.array([1], dtype=np.uint8)), layout="N")
        print(cvcuda.current_cache_size_inbytes(), wrapped.layout == "N")
        """
    ) == ["0", "8192", "8192 True"]


def test_a_shorter_wider_tensor_takes_a_dropped_ones_memory():
    assert run_script(
        """
        import cvcuda
        import numpy as np

        name = "__array_interface__" if cvcuda.backend() == "host" else "__cuda_array_interface__"
        interface = lambda export: getattr(export, name)

        def make(height, width):
            tensor = cvcuda.Tensor((height, width, 4), np.float32, cvcuda.TensorLayout.HWC)
            return interface(tensor.cuda())["data"][0]

        first = make(16, 32)
        second = make(4, 64)
        print(first == second)
        print(cvcuda.current_cache_size_inbytes(), cvcuda.cache_size())
        """
    ) == ["True", "8192 1"]


def test_growth_is_bounded_by_the_limit():
    lines = run_script(
        """
        import cvcuda
        import numpy as np

        limit = 8 << 20
        cvcuda.set_cache_limit_inbytes(limit)
        for step in range(40):
            cvcuda.Tensor((100 + step, 1000, 3), np.float32, cvcuda.TensorLayout.HWC)
            assert cvcuda.current_cache_size_inbytes() <= limit
        print(cvcuda.cache_size())
        """
    )
    assert 1 <= int(lines[0]) < 40


def test_growth_below_the_limit_allocates_each_time():
    assert run_script(
        """
        import cvcuda
        import numpy as np

        for step in range(10):
            cvcuda.Tensor((100 + step, 100, 3), np.float32, cvcuda.TensorLayout.HWC)
        print(cvcuda.cache_size())
        """
    ) == ["10"]


def test_reading_and_setting_the_limit():
    assert run_script(
        """
        import cvcuda

        total = cvcuda.device_info().total_memory
        print(cvcuda.get_cache_limit_inbytes() == total // 2)
        cvcuda.set_cache_limit_inbytes(12345)
        print(cvcuda.get_cache_limit_inbytes())
        cvcuda.set_cache_limit_inbytes(total // 2)
        print(cvcuda.get_cache_limit_inbytes() == total // 2)
        """
    ) == ["True", "12345", "True"]


def test_querying_the_size():
    assert run_script(
        """
        import cvcuda

        print(cvcuda.current_cache_size_inbytes())
        image = cvcuda.Image.zeros((1, 1), cvcuda.Format.F32)
        print(cvcuda.current_cache_size_inbytes(), cvcuda.internal.nbytes_in_cache(image))
        """
    ) == ["0", "512 512"]


def test_clearing_everything():
    assert run_script(
        """
        import cvcuda
        import numpy as np

        tensor = cvcuda.Tensor((16, 32, 4), np.float32, cvcuda.TensorLayout.HWC)
        del tensor
        print(cvcuda.cache_size())
        cvcuda.clear_cache()
        print(cvcuda.cache_size(), cvcuda.current_cache_size_inbytes())
        """
    ) == ["1", "0 0"]


def test_threads_count_their_own_and_exit_needs_no_sleep():
    script = """
        import threading
        import cvcuda
        import numpy as np

        local = cvcuda.ThreadScope.LOCAL

        def work():
            tensor = cvcuda.Tensor((16, 32, 4), np.float32, cvcuda.TensorLayout.HWC)
            print(cvcuda.cache_size(), cvcuda.cache_size(local))
            cvcuda.clear_cache(local)
            print(cvcuda.cache_size(), cvcuda.cache_size(local))

        def main():
            tensor = cvcuda.Tensor((16, 32, 4), np.float32, cvcuda.TensorLayout.HWC)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            print(cvcuda.cache_size(), cvcuda.current_cache_size_inbytes())

        main()
        """
    for _ in range(5):
        assert run_script(script) == ["2 1", "1 0", "1 8192"]


def test_pending_results_are_reused_on_the_consumers_stream():
    assert run_script(
        """
        import cvcuda
        import numpy as np

        stream = cvcuda.Stream()
        with stream:
            source = cvcuda.as_tensor(foreign(np.zeros((1, 64, 64, 3), np.uint8)), "NHWC")
            for _ in range(100):
                small = cvcuda.pillowresize(source, (1, 32, 32, 3), cvcuda.Format.RGB8)
                turned = cvcuda.flip(small, 1)
                scaled = cvcuda.convertto(turned, np.float32, 1 / 255)
                ready = cvcuda.reformat(scaled, cvcuda.TensorLayout.NCHW)
                del small, turned, scaled, ready
            stream.sync()
        print(cvcuda.cache_size() <= 10)
        cvcuda.clear_cache()
        print(cvcuda.current_cache_size_inbytes())
        """
    ) == ["True", "0"]


def test_older_names_of_streams_and_imports():
    assert run_script(
        """
        from cvcuda.cuda import Stream, as_stream
        from cvcuda.internal import nbytes_in_cache
        import cvcuda.cuda
        import cvcuda

        print(Stream is cvcuda.Stream, cvcuda.cuda.as_stream is cvcuda.as_stream is as_stream)
        print(nbytes_in_cache(Stream()), Stream.current is Stream.default)
        """
    ) == ["True True", "0 True"]
