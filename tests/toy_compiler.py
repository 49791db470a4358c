"""How XLA compiles the programs of the tests, which run for a moment: quickly, not well."""

QUICK = {
    'xla_backend_optimization_level': '0',
    'xla_llvm_disable_expensive_passes': 'true',
    'xla_cpu_use_fusion_emitters': 'false',
    'xla_cpu_parallel_codegen_split_count': '1',
}
"""A quarter of the seconds that XLA's own settings take for a train step. What is computed is the same to rounding."""
AS_USERS = {
    'xla_backend_optimization_level': 3,
    'xla_llvm_disable_expensive_passes': False,
    'xla_cpu_use_fusion_emitters': True,
    'xla_cpu_parallel_codegen_split_count': 32,
}
"""Compiler options of one program: XLA's own settings again."""
ONE_DEVICE = ' '.join(f'--{name}={value}' for name, value in QUICK.items())
"""The value of XLA_FLAGS for a process with one device of the CPU."""
EIGHT_DEVICES = f'{ONE_DEVICE} --xla_force_host_platform_device_count=8'
