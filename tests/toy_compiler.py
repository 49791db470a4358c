"""How XLA compiles the programs of the tests, which run for a moment: quickly, not well."""

import os
import subprocess
import sys

START = 'from jaxlib import xla_client; xla_client.make_cpu_client()'
"""The shortest program in which XLA reads its flags; one that it does not know ends the process."""


def known_options(options):
    """The options whose names are flags of the installed jaxlib, as a process of its own found out."""
    flags = {as_flags({name: value}): name for name, value in options.items()}
    environment = {**os.environ, 'XLA_FLAGS': ' '.join(flags)}
    asked = subprocess.run([sys.executable, '-c', START], env=environment, capture_output=True, text=True)
    if not asked.returncode:
        return dict(options)
    unknown = {flags[word] for word in asked.stderr.partition(' in XLA_FLAGS:')[2].split() if word in flags}
    assert unknown, f'jaxlib did not start for another reason than its flags {list(flags)}:\n{asked.stderr}'
    return {name: value for name, value in options.items() if name not in unknown}


def as_flags(options):
    """The options as XLA_FLAGS has them."""
    spelled = {n: str(value).lower() if isinstance(value, bool) else value for n, value in options.items()}
    return ' '.join(f'--{name}={value}' for name, value in spelled.items())


QUICK = known_options(
    {
        'xla_backend_optimization_level': 0,
        'xla_llvm_disable_expensive_passes': True,
        'xla_cpu_use_fusion_emitters': False,  # jaxlib 0.11 has no such flag
        'xla_cpu_parallel_codegen_split_count': 1,
    }
)
"""A quarter of the seconds that XLA's own settings take for a train step. What is computed is the same to rounding."""


def options(**wanted):
    """Compiler options of one program: those of names in `QUICK`, which this jaxlib knows."""
    return {name: value for name, value in wanted.items() if name in QUICK}


AS_USERS = options(
    xla_backend_optimization_level=3,
    xla_llvm_disable_expensive_passes=False,
    xla_cpu_use_fusion_emitters=True,
    xla_cpu_parallel_codegen_split_count=32,
)
"""Compiler options of one program: XLA's own settings again."""
ONE_DEVICE = as_flags(QUICK)
"""The value of XLA_FLAGS for a process with one device of the CPU."""
EIGHT_DEVICES = f'{ONE_DEVICE} --xla_force_host_platform_device_count=8'
