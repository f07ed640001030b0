# SPDX-License-Identifier: Apache-2.0
"""Memory, streams and graphs from PyTorch, with the same face as cuda_ctypes.DriverRank."""
import threading

import torch

from nccl_ctypes import BFLOAT16

# torch.cuda.graph synchronizes the device when it begins: never while another thread captures.
capture_lock = threading.Lock()


class TorchRank:
    name = "torch"
    dtype = BFLOAT16

    def __init__(self, device, count):
        torch.cuda.set_device(device)
        self.torch_stream = torch.cuda.Stream(device)
        self.tensor = torch.zeros(count, dtype=torch.bfloat16, device="cuda:%d" % device)
        self.pointer = self.tensor.data_ptr()
        self.count = count
        self.graph = None
        torch.cuda.synchronize(device)

    @property
    def stream(self):
        return self.torch_stream.cuda_stream

    def fill(self, value):
        with torch.cuda.stream(self.torch_stream):
            self.tensor.fill_(float(value))

    def holds(self, value):
        with torch.cuda.stream(self.torch_stream):
            right = bool((self.tensor == float(value)).all().item())
        return right

    def synchronize(self):
        self.torch_stream.synchronize()

    def capture(self, work):
        with capture_lock:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=self.torch_stream, capture_error_mode="thread_local"):
                work()
            self.synchronize()

    def replay(self):
        with torch.cuda.stream(self.torch_stream):
            self.graph.replay()

    def close(self):
        self.graph = None
