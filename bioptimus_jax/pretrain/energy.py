"""Energy that the GPUs of this process use, as their driver counts it (NVML); nothing else reports any."""

import os
from typing import Any

import jax


class Meter:
    """Joules since the last question. Needs an NVIDIA GPU (Volta or later) and the package nvidia-ml-py."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._handles: list[Any] = []
        gpus = [d for d in jax.local_devices() if d.platform == 'gpu']
        if gpus:
            try:
                import pynvml

                pynvml.nvmlInit()
                self._handles = [self._handle(pynvml, gpu.local_hardware_id) for gpu in gpus]
                self._nvml = pynvml
            except Exception:  # no package, no driver, a slice of a GPU: training does not depend on it
                self._nvml = None
        self._last = self._read()

    def since_last(self) -> float | None:
        """Joules of all GPUs of this process since the last call, None where a device does not report them."""
        now = self._read()
        used = None if now is None or self._last is None else now - self._last
        self._last = now
        return used

    def _read(self) -> float | None:
        if self._nvml is None:
            return None
        try:
            counts = [self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle) for handle in self._handles]
        except self._nvml.NVMLError:
            return None
        return sum(counts) / 1000  # millijoules since the driver was loaded

    @staticmethod
    def _handle(nvml: Any, number: int) -> Any:
        """The device behind a number of CUDA's, which CUDA_VISIBLE_DEVICES may have renumbered."""
        visible = [x for x in os.environ.get('CUDA_VISIBLE_DEVICES', '').split(',') if x]
        name = visible[number] if number < len(visible) else str(number)
        if name.isdigit():
            return nvml.nvmlDeviceGetHandleByIndex(int(name))
        return nvml.nvmlDeviceGetHandleByUUID(name)
