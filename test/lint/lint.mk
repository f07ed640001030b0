# SPDX-License-Identifier: Apache-2.0
# clang-tidy and cppcheck over shim/: minutes, so not a part of `make test`.
.PHONY: lint
lint:
	$(SUB) $(PYTHON) test/lint/run.py
