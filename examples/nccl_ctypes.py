# SPDX-License-Identifier: Apache-2.0
"""NCCL through ctypes, the way vLLM and SGLang reach it: open the library by name or by path, look each
function up on that handle, call it."""
import ctypes
from ctypes import c_char, c_char_p, c_int, c_size_t, c_void_p

SUM = 0
INT32 = 2
FLOAT32 = 7
BFLOAT16 = 9


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", c_char * 128)]


class NcclError(RuntimeError):
    pass


FUNCTIONS = {
    "ncclGetVersion": [ctypes.POINTER(c_int)],
    "ncclGetUniqueId": [ctypes.POINTER(UniqueId)],
    "ncclCommInitRank": [ctypes.POINTER(c_void_p), c_int, UniqueId, c_int],
    "ncclCommCount": [c_void_p, ctypes.POINTER(c_int)],
    "ncclCommUserRank": [c_void_p, ctypes.POINTER(c_int)],
    "ncclAllReduce": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p],
    "ncclGroupStart": [],
    "ncclGroupEnd": [],
    "ncclCommDestroy": [c_void_p],
}


class Nccl:
    """One copy of NCCL. `library` is "libnccl.so.2" (the loader's choice) or an absolute path."""

    def __init__(self, library="libnccl.so.2"):
        self.library = library
        self.handle = ctypes.CDLL(library)
        self.functions = {}
        for name, arguments in FUNCTIONS.items():
            function = getattr(self.handle, name)  # a dlsym on this handle
            function.argtypes = arguments
            function.restype = c_int
            self.functions[name] = function
        self.error_string = self.handle.ncclGetErrorString
        self.error_string.argtypes = [c_int]
        self.error_string.restype = c_char_p

    def call(self, name, *arguments):
        result = self.functions[name](*arguments)
        if result != 0:
            raise NcclError("%s: %s" % (name, self.error_string(result).decode()))

    def version(self):
        code = c_int()
        self.call("ncclGetVersion", ctypes.byref(code))
        return code.value

    def unique_id(self):
        uid = UniqueId()
        self.call("ncclGetUniqueId", ctypes.byref(uid))
        return uid

    def init_rank(self, ranks, uid, rank):
        comm = c_void_p()
        self.call("ncclCommInitRank", ctypes.byref(comm), ranks, uid, rank)
        return comm

    def all_reduce(self, comm, pointer, count, dtype, stream):
        """In place, sum."""
        self.call("ncclAllReduce", pointer, pointer, count, dtype, SUM, comm, stream)

    def group(self):
        """An empty group: valid, does nothing."""
        self.call("ncclGroupStart")
        self.call("ncclGroupEnd")

    def destroy(self, comm):
        self.call("ncclCommDestroy", comm)
