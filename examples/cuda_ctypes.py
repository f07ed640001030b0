# SPDX-License-Identifier: Apache-2.0
"""As much of the CUDA driver API as pynccl_client needs where there is no torch: memory, a stream, a
captured graph. Works on a real driver and on the simulated one."""
import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p

from nccl_ctypes import INT32

NON_BLOCKING = 1
CAPTURE_THREAD_LOCAL = 1


class DriverError(RuntimeError):
    pass


class Driver:
    def __init__(self):
        """OSError when there is no driver."""
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.lib.cuGetErrorName.argtypes = [c_int, ctypes.POINTER(c_char_p)]
        self.call("cuInit", c_uint(0))

    def call(self, name, *arguments):
        result = getattr(self.lib, name)(*arguments)
        if result != 0:
            text = c_char_p()
            self.lib.cuGetErrorName(result, ctypes.byref(text))
            raise DriverError("%s: %s" % (name, (text.value or b"error %d" % result).decode()))

    def device_count(self):
        count = c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value


class DriverRank:
    """Memory, stream and graph of one rank; made and used on one thread."""

    name = "driver"
    dtype = INT32

    def __init__(self, driver, device, count):
        self.driver = driver
        handle, context = c_int(), c_void_p()
        driver.call("cuDeviceGet", ctypes.byref(handle), c_int(device))
        driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        driver.call("cuCtxSetCurrent", context)
        self.stream = c_void_p()
        driver.call("cuStreamCreate", ctypes.byref(self.stream), c_uint(NON_BLOCKING))
        self.count = count
        self.address = c_ulonglong()
        driver.call("cuMemAlloc_v2", ctypes.byref(self.address), c_size_t(4 * count))
        self.pointer = self.address.value
        self.graph = None

    def fill(self, value):
        self.driver.call("cuMemsetD32Async", self.address, c_uint(value & 0xffffffff), c_size_t(self.count),
                         self.stream)

    def holds(self, value):
        host = (c_uint * self.count)()
        self.synchronize()
        self.driver.call("cuMemcpyDtoH_v2", host, self.address, c_size_t(4 * self.count))
        return all(v == value & 0xffffffff for v in host)

    def synchronize(self):
        self.driver.call("cuStreamSynchronize", self.stream)

    def capture(self, work):
        """Capture what `work()` puts into the stream."""
        graph, self.graph = c_void_p(), c_void_p()
        self.driver.call("cuStreamBeginCapture_v2", self.stream, c_int(CAPTURE_THREAD_LOCAL))
        work()
        self.driver.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.driver.call("cuGraphInstantiateWithFlags", ctypes.byref(self.graph), graph, c_ulonglong(0))
        self.driver.call("cuGraphUpload", self.graph, self.stream)
        self.driver.call("cuGraphDestroy", graph)
        self.synchronize()

    def replay(self):
        self.driver.call("cuGraphLaunch", self.graph, self.stream)

    def close(self):
        if self.graph:
            self.driver.call("cuGraphExecDestroy", self.graph)
        self.driver.call("cuMemFree_v2", self.address)
        self.driver.call("cuStreamDestroy_v2", self.stream)
