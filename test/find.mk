# SPDX-License-Identifier: Apache-2.0
# Where cuda.h and nccl.h are, and what is missing. Only the stand-ins, the examples and the tests
# need them: the shared object and the command find CUDA and NCCL at run time.

first = $(firstword $(wildcard $(1)))
WHEELS    := $(shell $(PYTHON) -c "import sys, glob; print(*[d for p in sys.path for d in glob.glob(p + '/nvidia')])" 2>/dev/null)
CUDA_H    := $(call first,$(CUDA_HOME:%=%/include/cuda.h) /usr/local/cuda/include/cuda.h /usr/local/cuda-*/include/cuda.h \
               /usr/include/cuda.h $(WHEELS:%=%/cuda_runtime/include/cuda.h) $(WHEELS:%=%/cu13/include/cuda.h))
NCCL_H    := $(call first,$(NCCL_HOME:%=%/include/nccl.h) $(CUDA_HOME:%=%/include/nccl.h) /usr/local/cuda/include/nccl.h \
               /usr/local/cuda-*/include/nccl.h /usr/include/nccl.h $(WHEELS:%=%/nccl/include/nccl.h))
INI_H     := $(call first,$(INIH_HOME:%=%/include/ini.h) /usr/include/ini.h /usr/local/include/ini.h)
CUDA_INC  := $(patsubst %/cuda.h,%,$(CUDA_H))
NCCL_INC  := $(patsubst %/nccl.h,%,$(NCCL_H))

.PHONY: check-deps check-headers
check-deps:
	@test -n "$(INI_H)" || { echo "ncclshim: ini.h not found: apt-get install libinih-dev, or INIH_HOME=<prefix>" >&2; exit 1; }

check-headers: | check-deps
	@test -n "$(CUDA_H)" || { echo "ncclshim: cuda.h not found: install the CUDA toolkit (package cuda-cudart-dev), or CUDA_HOME=<prefix>" >&2; exit 1; }
	@test -n "$(NCCL_H)" || { echo "ncclshim: nccl.h not found: apt-get install libnccl-dev, or NCCL_HOME=<prefix>" >&2; exit 1; }
