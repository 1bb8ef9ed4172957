#!/usr/bin/python3
"""gpu_kernels.py COUNT ROUNDS BLOCKS: runs so many kernels of so many rounds on so many blocks, one after the other, on the one GPU that it
sees: what a small model keeps busy. Prints the seconds that they took. CUDA's driver alone (CUDA Driver API)."""

import ctypes
import sys
import time

KERNEL = b""".version 5.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %more;
  .reg .b32 %r<4>;
  .reg .b64 %place<3>;
  ld.param.u64 %place1, [out];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, 1;
AGAIN:
  mad.lo.u32 %r2, %r2, 1664525, 1013904223;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %more, %r1, 0;
  @%more bra AGAIN;
  cvta.to.global.u64 %place2, %place1;
  st.global.u32 [%place2], %r2;
  ret;
}
"""


def main():
    count, rounds, blocks = map(int, sys.argv[1:])
    cuda = ctypes.CDLL("libcuda.so.1")

    def ask(name, *arguments):
        code = getattr(cuda, name)(*arguments)
        if code:
            raise SystemExit(f"{name} says {code}")

    context, module, function, data = (ctypes.c_void_p() for _ in range(4))
    ask("cuInit", 0)
    ask("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    ask("cuModuleLoadData", ctypes.byref(module), KERNEL)
    ask("cuModuleGetFunction", ctypes.byref(function), module, b"spin")
    ask("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(4096))
    number = ctypes.c_uint32(rounds)
    parameters = (ctypes.c_void_p * 2)(ctypes.addressof(data), ctypes.addressof(number))

    def run():
        ask("cuLaunchKernel", function, blocks, 1, 1, 128, 1, 1, 0, None, parameters, None)
        ask("cuCtxSynchronize")

    run()
    begun = time.monotonic()
    for _ in range(count):
        run()
    print(time.monotonic() - begun)


if __name__ == "__main__":
    main()
