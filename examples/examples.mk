# SPDX-License-Identifier: Apache-2.0
.PHONY: examples
examples:
