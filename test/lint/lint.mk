# SPDX-License-Identifier: Apache-2.0
# clang-tidy and cppcheck over shim/ (test/harness/lint.py), without the other tests.
.PHONY: lint
lint:
	$(SUB) $(PYTHON) test/run.py lint
